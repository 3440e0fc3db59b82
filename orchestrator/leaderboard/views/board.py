"""The leaderboard as the REST API and the page show it: ranks, groups that cannot be distinguished, and publication dates of
the problems.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby

from sqlmodel import Session

from orchestrator.dashboard.rendering.charts import Trend
from orchestrator.datasets.errors import UnknownBenchmark
from orchestrator.datasets.packs.pack import Entry
from orchestrator.errors import Invalid
from orchestrator.http.context import Services
from orchestrator.leaderboard.queries import newest_harness, read_candidates
from orchestrator.leaderboard.ranking import LEVEL, Entrant, RankedModel, leaderboard
from orchestrator.leaderboard.samples import BoardSample, board_samples, unranked
from orchestrator.leaderboard.schemas import BoardSampleOut, LeaderboardOut, PlaceOut, UnrankedOut
from orchestrator.leaderboard.views.details import place_details
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs.reports import queries as page_queries
from orchestrator.runs.views.deltas import UsageView, usage_view
from orchestrator.schedules.drift.judge import results_of
from orchestrator.schedules.drift.series import Results

SHOWN_SAMPLES = 20
WIDTH, HEIGHT = 600.0, 48.0


@dataclass(frozen=True)
class ModelDetails:
    """Facts about a model besides its rank."""

    cut_off: date | None = None
    trend: Trend | None = None


@dataclass(frozen=True)
class Row:
    place: PlaceOut
    about: ModelDetails
    places: str
    """The rank, or the range of possible ranks."""
    seen: int
    """Problems of the window that are not newer than the model's training cut-off."""


@dataclass(frozen=True)
class Bar:
    month: str
    count: int
    x: float
    y: float
    width: float
    height: float
    inside: bool


@dataclass(frozen=True)
class Mark:
    """A model's training cut-off on the timeline."""

    models: str
    day: date
    x: float


@dataclass(frozen=True)
class Timeline:
    """Number of problems published per month."""

    first: str
    last: str
    months: int
    start: int
    """The first month of the window, counted from `first`; `end` is its last."""
    end: int
    bars: list[Bar]
    marks: list[Mark]
    words: str


def groups(places: Sequence[PlaceOut], details: Mapping[str, ModelDetails], entries: Sequence[Entry]) -> list[list[Row]]:
    """Groups whose members cannot be distinguished from the first one; best group first. `entries` are the window's
    problems.
    """
    days = [entry.day for entry in entries if entry.day is not None]
    rows = []
    for place in places:
        about = details.get(place.model, ModelDetails())
        seen = 0 if about.cut_off is None else sum(day <= about.cut_off for day in days)
        span = str(place.best) if place.best == place.worst else f"{place.best} – {place.worst}"
        rows.append(Row(place, about, span, seen))
    return [list(members) for _, members in groupby(rows, key=lambda row: row.place.group)]


def inside(entry: Entry, after: date | None, before: date | None) -> bool:
    """Whether a problem is in the window; one without a date is only in an unbounded window."""
    if after is None and before is None:
        return True
    return entry.day is not None and (after is None or entry.day >= after) and (before is None or entry.day <= before)


def timeline(
    entries: Sequence[Entry], after: date | None, before: date | None, details: Mapping[str, ModelDetails]
) -> Timeline | None:
    """None if problems have no dates, or all dates are in one month."""
    days = sorted(entry.day for entry in entries if entry.day is not None)
    if not days or _month(days[0]) == _month(days[-1]):
        return None
    base, count = _month(days[0]), _month(days[-1]) - _month(days[0]) + 1
    counts = Counter(_month(day) - base for day in days)
    start = max(0, _month(after) - base) if after else 0
    end = min(count - 1, _month(before) - base) if before else count - 1
    step, top = WIDTH / count, max(counts.values())
    bars = []
    for index in range(count):
        high = HEIGHT * counts[index] / top
        bars.append(
            Bar(
                _name(base + index), counts[index], round(index * step, 2), round(HEIGHT - high, 2),
                round(step * 0.86, 2), round(high, 2), start <= index <= end,
            )
        )  # fmt: skip
    inside_count = sum(inside(entry, after, before) for entry in entries)
    words = f"{inside_count} of {len(entries)} problems, {_name(base + start)} to {_name(base + max(start, end))}"
    return Timeline(
        _name(base), _name(base + count - 1), count, start, max(start, end), bars, _marks(details, base, count), words
    )


def after_all_cut_offs(details: Mapping[str, ModelDetails], entries: Sequence[Entry]) -> date | None:
    """The first day after every model's training cut-off, if there are problems from then on."""
    days = [about.cut_off for about in details.values() if about.cut_off is not None]
    if not days:
        return None
    first = max(days) + timedelta(days=1)
    return first if any(entry.day is not None and entry.day >= first for entry in entries) else None


def _marks(details: Mapping[str, ModelDetails], base: int, count: int) -> list[Mark]:
    by_day: dict[date, list[str]] = {}
    for model, about in sorted(details.items()):
        if about.cut_off is not None:
            by_day.setdefault(about.cut_off, []).append(model)
    marks = []
    for day, models in sorted(by_day.items()):
        where = (_month(day) - base + (day.day - 1) / 31) / count
        marks.append(Mark(", ".join(models), day, round(WIDTH * min(max(where, 0.0), 1.0), 2)))
    return marks


def _month(day: date) -> int:
    return 12 * day.year + day.month - 1


def _name(month: int) -> str:
    return f"{month // 12:04}-{month % 12 + 1:02}"


async def board_problems(context: Services, name: str) -> tuple[str, Sequence[Entry]]:
    """Digest and problems of a benchmark: those of the catalogue, or those of the newest harness run of that name."""
    try:
        info = await asyncio.to_thread(context.catalogue.get, name)
        return info.pack_digest, await asyncio.to_thread(context.catalogue.entries, name)
    except UnknownBenchmark:
        newest = await context.db.read(lambda session: newest_harness(session, name))
        if newest is None:
            raise
        return newest[0], [Entry(problem_id) for problem_id in newest[1]]


@dataclass(frozen=True)
class Board:
    """A leaderboard with the results behind it."""

    out: LeaderboardOut
    results: Mapping[str, Results]
    """By model, on the problems of the board."""
    entries: Sequence[Entry]
    """All problems of the benchmark."""
    models: Mapping[str, LlmModel]


@dataclass(frozen=True)
class _Rows:
    samples: list[BoardSample]
    chosen: BoardSample | None
    entrants: list[Entrant]
    unranked: list[UnrankedOut]
    imported: set[str]
    models: dict[str, LlmModel]
    usage: dict[str, UsageView]
    """By run."""


async def read_board(
    context: Services, benchmark: str | None, after: date | None, before: date | None, sample: str | None = None
) -> LeaderboardOut:
    return (await measure_board(context, benchmark, after, before, sample)).out


async def measure_board(
    context: Services, benchmark: str | None, after: date | None, before: date | None, sample: str | None = None
) -> Board:
    name = benchmark or context.catalogue.default_benchmark()
    pack_digest, entries = await board_problems(context, name)
    window = frozenset(entry.id for entry in entries if inside(entry, after, before))
    rows = await context.db.read(lambda session: _rows(session, name, pack_digest, window, sample))
    ranking = await asyncio.to_thread(leaderboard, rows.entrants)
    results = {entrant.model: entrant.results for entrant in rows.entrants}
    by_id = {entry.id: entry for entry in entries}

    def place(ranked: RankedModel) -> PlaceOut:
        cut_off = rows.models[ranked.model].training_cutoff
        details = place_details(results[ranked.model], by_id, cut_off, rows.usage.get(ranked.run_id))
        return PlaceOut.of(ranked, details, imported=ranked.run_id in rows.imported)

    out = LeaderboardOut(
        benchmark=name,
        pack_digest=pack_digest,
        after=after,
        before=before,
        level=LEVEL,
        window_problems=len(window),
        sample=BoardSampleOut.of(rows.chosen) if rows.chosen is not None else None,
        samples=[BoardSampleOut.of(entry) for entry in rows.samples[:SHOWN_SAMPLES]],
        places=[place(ranked) for ranked in ranking],
        unranked=rows.unranked,
    )
    return Board(out, results, entries, rows.models)


def _rows(session: Session, name: str, pack_digest: str, window: frozenset[str], sample: str | None) -> _Rows:
    candidates = read_candidates(session, name, pack_digest)
    samples = board_samples(candidates, window, pack_digest)
    board = _chosen(samples, sample)
    models = model_queries.by_ids(session, {candidate.model_id for candidate in candidates})
    entrants = []
    for model_id, run_id in board.runs.items() if board is not None else ():
        results = results_of(session, run_id)
        of_board = {key: result for key, result in results.items() if board and key[0] == name and key[1] in board.problems}
        entrants.append(Entrant(models[model_id].slug, run_id, of_board))
    rest = [
        UnrankedOut(model=models[entry.model_id].slug, run_id=entry.run_id, problems=entry.problems, why=entry.why)
        for entry in unranked(candidates, board)
    ]
    run_ids = [entrant.run_id for entrant in entrants]
    calls = page_queries.call_sums(session, run_ids) if run_ids else {}
    usage = {run.id: usage_view(run, calls.get(run.id)) for run in page_queries.by_ids(session, run_ids)}
    imported = {candidate.run_id for candidate in candidates if candidate.imported}
    return _Rows(samples, board, entrants, rest, imported, {model.slug: model for model in models.values()}, usage)


def _chosen(samples: list[BoardSample], sample_id: str | None) -> BoardSample | None:
    if sample_id is None:
        return samples[0] if samples else None
    for sample in samples:
        if sample.id == sample_id:
            return sample
    raise Invalid(f"there is no sample {sample_id!r} here; `samples` of the leaderboard lists the existing ones")
