"""REST for the leaderboard: models on the same pack and window, never a bare rank."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query
from sqlmodel import Session

from orchestrator.api.context import Context
from orchestrator.api.schemas import Answer
from orchestrator.db import model_queries, schedule_queries
from orchestrator.schedules.judge import results_of
from orchestrator.schedules.leaderboard import LEVEL, Entrant, Place, leaderboard

router = APIRouter(prefix="/api/leaderboard", tags=["leaderboard"])


class PlaceOut(Answer):
    model: str
    run_id: str
    estimate: float
    low: float
    high: float
    problems: int
    best: int
    worst: int
    group: int
    tied_with: list[str]

    @classmethod
    def of(cls, place: Place) -> PlaceOut:
        own = {name: getattr(place, name) for name in ("model", "run_id", "problems", "best", "worst", "group")}
        score = {name: getattr(place.score, name) for name in ("estimate", "low", "high")}
        return cls(**own, **score, tied_with=list(place.tied_with))


class LeaderboardOut(Answer):
    benchmark: str
    pack_digest: str
    after: date | None
    before: date | None
    level: float
    places: list[PlaceOut]


@router.get("")
async def get_leaderboard(
    context: Context,
    benchmark: Annotated[str | None, Query(min_length=1, max_length=100)] = None,
    after: Annotated[date | None, Query(description="Only problems from this day on.")] = None,
    before: Annotated[date | None, Query(description="Only problems up to this day.")] = None,
) -> LeaderboardOut:
    """The newest comparable run of each model on the benchmark's pack; places as far as paired tests separate them."""
    name = benchmark or context.catalogue.default_benchmark()
    info = await asyncio.to_thread(context.catalogue.get, name)
    entries = await asyncio.to_thread(context.catalogue.entries, name)
    wanted = {
        entry.id
        for entry in entries
        if (after is None or (entry.day is not None and entry.day >= after))
        and (before is None or (entry.day is not None and entry.day <= before))
    }

    def read(session: Session) -> list[Entrant]:
        runs = schedule_queries.newest_comparable_runs(session, name, info.pack_digest)
        models = model_queries.by_ids(session, set(runs))
        found = []
        for model_id, run_id in runs.items():
            results = results_of(session, run_id)
            kept = {key: each for key, each in results.items() if key[0] == name and key[1] in wanted}
            if kept:
                found.append(Entrant(models[model_id].slug, run_id, kept))
        return found

    entrants = await context.db.read(read)
    places = await asyncio.to_thread(leaderboard, entrants)
    return LeaderboardOut(
        benchmark=name,
        pack_digest=info.pack_digest,
        after=after,
        before=before,
        level=LEVEL,
        places=[PlaceOut.of(place) for place in places],
    )
