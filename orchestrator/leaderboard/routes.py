"""REST for the leaderboard: models on the same pack, window and sample, never a bare rank."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import Query

from orchestrator.http.context import Context
from orchestrator.http.policy import READ, Policy, Router
from orchestrator.leaderboard.schemas import LeaderboardOut
from orchestrator.leaderboard.views.board import read_board

router = Router(prefix="/api/leaderboard", tags=["leaderboard"])


@router.get("", policy=Policy(READ))
async def get_leaderboard(
    context: Context,
    benchmark: Annotated[str | None, Query(min_length=1, max_length=100)] = None,
    after: Annotated[date | None, Query(description="Only problems from this day on.")] = None,
    before: Annotated[date | None, Query(description="Only problems up to this day.")] = None,
    sample: Annotated[str | None, Query(max_length=16, description="An id of `samples`. Default: the first.")] = None,
) -> LeaderboardOut:
    """Models on one sample of the benchmark's pack, each by its newest comparable run that has all of its problems, ranked
    as far as paired tests separate them. The default is the sample with the most comparisons: pairs of models times
    problems. Models without such a run are in `unranked`.
    """
    return await read_board(context, benchmark, after, before, sample)
