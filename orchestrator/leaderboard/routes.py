"""REST for the leaderboard: models on the same pack, window and sample, never a bare rank."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Annotated

from fastapi import Query
from pydantic import Field
from sqlmodel import Session

from orchestrator.errors import Invalid
from orchestrator.http.context import Context
from orchestrator.http.policy import READ, Policy, Router
from orchestrator.http.schemas import Answer
from orchestrator.leaderboard.candidates import read_candidates
from orchestrator.leaderboard.ranking import LEVEL, Entrant, Place, leaderboard
from orchestrator.leaderboard.samples import BoardSample, board_samples, unranked
from orchestrator.models import queries as model_queries
from orchestrator.schedules.drift.judge import results_of

router = Router(prefix="/api/leaderboard", tags=["leaderboard"])

SHOWN_SAMPLES = 20


class PlaceOut(Answer):
    model: str
    run_id: str
    estimate: float
    low: float
    high: float
    problems: int = Field(description="Problems of the board's sample with a result; others ended with errors.")
    results: int = Field(default=0, description="Answers that count, over all samples of these problems.")
    best: int
    worst: int
    group: int
    tied_with: list[str]

    @classmethod
    def of(cls, place: Place) -> PlaceOut:
        own = {name: getattr(place, name) for name in ("model", "run_id", "problems", "results", "best", "worst", "group")}
        score = {name: getattr(place.score, name) for name in ("estimate", "low", "high")}
        return cls(**own, **score, tied_with=list(place.tied_with))


class BoardSampleOut(Answer):
    """Problems that models are compared on: every place is of all of them."""

    id: str
    problems: int
    prompt_version: str
    models: int = Field(description="Models with a comparable run on all of its problems.")

    @classmethod
    def of(cls, sample: BoardSample) -> BoardSampleOut:
        return cls(
            id=sample.id,
            problems=len(sample.problems),
            prompt_version=sample.prompt_version,
            models=len(sample.runs),
        )


class UnrankedOut(Answer):
    """A model that has no place, because no run of it is on the board's sample."""

    model: str
    run_id: str
    problems: int = Field(description="Of the board's sample.")
    why: str


class LeaderboardOut(Answer):
    benchmark: str
    pack_digest: str
    after: date | None
    before: date | None
    level: float
    window_problems: int = Field(description="Problems of the pack within the window.")
    sample: BoardSampleOut | None = Field(description="The sample that every place is of.")
    samples: list[BoardSampleOut] = Field(description="Samples that a board could be of, the best first.")
    places: list[PlaceOut]
    unranked: list[UnrankedOut]


@router.get("", policy=Policy(READ))
async def get_leaderboard(
    context: Context,
    benchmark: Annotated[str | None, Query(min_length=1, max_length=100)] = None,
    after: Annotated[date | None, Query(description="Only problems from this day on.")] = None,
    before: Annotated[date | None, Query(description="Only problems up to this day.")] = None,
    sample: Annotated[str | None, Query(max_length=16, description="An id of `samples`. Default: the first.")] = None,
) -> LeaderboardOut:
    """Models on one sample of the benchmark's pack, each by its newest comparable run that has all of its problems; places
    as far as paired tests separate them. The default sample is the one with most comparisons: pairs of models times
    problems. Models without such a run are in `unranked`."""
    name = benchmark or context.catalogue.default_benchmark()
    info = await asyncio.to_thread(context.catalogue.get, name)
    entries = await asyncio.to_thread(context.catalogue.entries, name)
    window = frozenset(
        entry.id
        for entry in entries
        if (after is None or (entry.day is not None and entry.day >= after))
        and (before is None or (entry.day is not None and entry.day <= before))
    )

    def read(session: Session) -> tuple[list[BoardSample], BoardSample | None, list[Entrant], list[UnrankedOut]]:
        candidates = read_candidates(session, name, info.pack_digest)
        known = board_samples(candidates, window, info.pack_digest)
        board = _chosen(known, sample)
        models = model_queries.by_ids(session, {each.model_id for each in candidates})
        entrants = []
        for model_id, run_id in board.runs.items() if board is not None else ():
            results = results_of(session, run_id)
            kept = {key: each for key, each in results.items() if board and key[0] == name and key[1] in board.problems}
            entrants.append(Entrant(models[model_id].slug, run_id, kept))
        rest = [
            UnrankedOut(model=models[each.model_id].slug, run_id=each.run_id, problems=each.problems, why=each.why)
            for each in unranked(candidates, board)
        ]
        return known, board, entrants, rest

    known, board, entrants, rest = await context.db.read(read)
    places = await asyncio.to_thread(leaderboard, entrants)
    return LeaderboardOut(
        benchmark=name,
        pack_digest=info.pack_digest,
        after=after,
        before=before,
        level=LEVEL,
        window_problems=len(window),
        sample=BoardSampleOut.of(board) if board is not None else None,
        samples=[BoardSampleOut.of(each) for each in known[:SHOWN_SAMPLES]],
        places=[PlaceOut.of(place) for place in places],
        unranked=rest,
    )


def _chosen(known: list[BoardSample], wanted: str | None) -> BoardSample | None:
    if wanted is None:
        return known[0] if known else None
    for each in known:
        if each.id == wanted:
            return each
    raise Invalid(f"there is no sample {wanted!r} here; `samples` of the leaderboard lists those there are")
