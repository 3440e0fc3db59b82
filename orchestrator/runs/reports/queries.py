"""Queries that only pages need: filtered lists, series of scores, the items of a run without their texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import String, Text, cast, func
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select

from orchestrator.alerts.tables import Alert
from orchestrator.gateway.ledger.tables import GatewayCall
from orchestrator.models.tables import LlmModel
from orchestrator.runs.queries import MEASURING, WITHOUT_TASK
from orchestrator.runs.tables import ContainerRun, Event, ItemRow
from orchestrator.system.identifiers import uuid7

SCORED_OF_MODEL = 500
"""How many of a model's newest finished runs are looked at for its trends: their cost does not depend on what is stored."""


@dataclass(frozen=True)
class RunFilter:
    """Which runs a list shows; None means any."""

    status: str | None = None
    model_id: int | None = None
    benchmark: str | None = None
    trigger: str | None = None


@dataclass(frozen=True)
class ScoredRun:
    """The columns of a finished run that a series of scores needs."""

    id: str
    model_id: int
    benchmarks: tuple[str, ...]
    score: dict[str, Any]
    items: int
    cost_usd: float
    started_at: datetime | None
    completed_at: datetime | None


@dataclass(frozen=True)
class ItemLine:
    """A result without its texts."""

    position: int
    benchmark: str
    problem_id: str
    sample_index: int
    outcome: str
    parity_outcome: str | None
    score: float | None
    cpu_s: float
    peak_bytes: int
    input_tokens: int
    output_tokens: int
    tests_total: int
    tests_passed: int
    fragile: bool
    detail: str


@dataclass(frozen=True)
class CallSums:
    """The answered calls of a run to the measured model."""

    count: int
    provider_s: float


class ItemVerdict(NamedTuple):
    """The outcome of an item and its position in the plan. Kept small because there are thousands."""

    position: int
    benchmark: str
    problem_id: str
    sample_index: int
    outcome: str
    parity_outcome: str | None
    fragile: bool
    score: float | None = None


def runs(session: Session, filters: RunFilter, *, limit: int, after: str | None = None) -> Sequence[ContainerRun]:
    """Newest first; `after` is the last id of the previous page."""
    query = select(ContainerRun).where(MEASURING).options(WITHOUT_TASK)
    if after is not None:
        query = query.where(col(ContainerRun.id) < after)
    if filters.status is not None:
        query = query.where(ContainerRun.status == filters.status)
    if filters.model_id is not None:
        query = query.where(ContainerRun.model_id == filters.model_id)
    if filters.trigger is not None:
        query = query.where(ContainerRun.trigger_type == filters.trigger)
    if filters.benchmark is not None:
        query = query.where(cast(col(ContainerRun.benchmarks), Text).contains(f'"{filters.benchmark}"', autoescape=True))
    return session.exec(query.order_by(col(ContainerRun.id).desc()).limit(limit)).all()


def by_ids(session: Session, run_ids: Sequence[str]) -> Sequence[ContainerRun]:
    """Without their plans."""
    return session.exec(select(ContainerRun).where(col(ContainerRun.id).in_(run_ids)).options(WITHOUT_TASK)).all()


def under_way(session: Session, limit: int = 50) -> Sequence[ContainerRun]:
    """Runs that have not ended: first those with a container, then the queue, oldest first."""
    found: list[ContainerRun] = []
    for status in ("starting", "running", "pending"):  # one by one: together, the whole queue would be sorted
        query = select(ContainerRun).where(MEASURING, ContainerRun.status == status).options(WITHOUT_TASK)
        found += session.exec(query.order_by(col(ContainerRun.id)).limit(limit - len(found))).all()
    return found


def scored(session: Session, *, per_series: int, model_id: int | None = None) -> list[ScoredRun]:
    """The newest finished runs of every (model, benchmarks, size), newest first, among the newest `SCORED_OF_MODEL` of each
    model. Graded stored answers are not included.

    Each size has its own, so that many small runs do not push out a large one.
    """
    series = (col(ContainerRun.model_id), cast(col(ContainerRun.benchmarks), Text), col(ContainerRun.sample_size))
    position = func.row_number().over(partition_by=series, order_by=col(ContainerRun.id).desc()).label("place")
    of_model = aliased(ContainerRun)
    newest_of_model = (
        select(of_model.id)
        .where(of_model.model_id == LlmModel.id, of_model.status == "completed", of_model.kind == "benchmark")
        .order_by(col(of_model.id).desc())
        .limit(SCORED_OF_MODEL)
        .correlate(LlmModel)
        .scalar_subquery()
    )
    figures: Any = [*_SCORED, position]
    numbered = select(*figures).join(LlmModel, col(ContainerRun.id).in_(newest_of_model))
    if model_id is not None:
        numbered = numbered.where(LlmModel.id == model_id)
    newest = numbered.subquery()
    columns: Any = [column for column in newest.c if column.name != "place"]
    query = select(*columns).where(newest.c.place <= per_series).order_by(newest.c.id.desc())
    return [
        ScoredRun(id_, model_id, tuple(benchmarks), score, *rest)
        for id_, model_id, benchmarks, score, *rest in session.exec(query).all()
        if score is not None and score.get("estimate") is not None
    ]


_LINE: Any = [getattr(ItemRow, name) for name in ItemLine.__dataclass_fields__]
_VERDICT: Any = [getattr(ItemRow, name) for name in ItemVerdict._fields]
_SCORED: Any = [
    getattr(ContainerRun, name)
    for name in ("id", "model_id", "benchmarks", "score", "items_done", "cost_usd", "started_at", "completed_at")
]


def items(session: Session, run_id: str, *, limit: int, after: int = -1, outcome: str | None = None) -> list[ItemLine]:
    """Results of a run in plan order, starting after position `after`."""
    query = select(*_LINE).where(ItemRow.run_id == run_id, col(ItemRow.position) > after)
    if outcome is not None:
        query = query.where(ItemRow.outcome == outcome)
    return [ItemLine(*row) for row in session.exec(query.order_by(col(ItemRow.position)).limit(limit)).all()]


def verdicts(session: Session, run_id: str) -> list[ItemVerdict]:
    """Every result of a run in plan order, in the short form."""
    query = select(*_VERDICT).where(ItemRow.run_id == run_id).order_by(col(ItemRow.position))
    return [ItemVerdict._make(row) for row in session.connection().execute(query)]


@dataclass(frozen=True)
class ProblemResult:
    """The result of one run on one problem."""

    run_id: str
    position: int
    sample_index: int
    outcome: str
    score: float | None


def across_runs(session: Session, run_ids: Sequence[str], benchmark: str, problem_id: str) -> list[ProblemResult]:
    """What these runs have on one problem. Each is found by its key: there is no index on problems alone."""
    columns: Any = [getattr(ItemRow, name) for name in ProblemResult.__dataclass_fields__]
    query = select(*columns).where(
        col(ItemRow.run_id).in_(run_ids), ItemRow.benchmark == benchmark, ItemRow.problem_id == problem_id
    )
    return [ProblemResult(*row) for row in session.exec(query.order_by(col(ItemRow.run_id), col(ItemRow.position))).all()]


def neighbours(
    session: Session, run_id: str, position: int, outcome: str | None, *, failed: bool = False
) -> tuple[int | None, int | None]:
    """Positions of the previous and next result, optionally among those with the given outcome, or that did not pass."""
    base = [ItemRow.run_id == run_id, *([ItemRow.outcome == outcome] if outcome else [])]
    if failed:
        base.append(ItemRow.outcome != "passed")
    before = select(func.max(ItemRow.position)).where(*base, col(ItemRow.position) < position)
    after = select(func.min(ItemRow.position)).where(*base, col(ItemRow.position) > position)
    return session.exec(before).one(), session.exec(after).one()


def calls(session: Session, run_id: str, keys: Sequence[str]) -> Sequence[Any]:
    """Ledger rows by call key, without the answers."""
    columns: Any = [column for column in GatewayCall.__table__.columns if column.name != "answer"]  # type: ignore[attr-defined]
    rows: Sequence[Any] = session.exec(
        select(*columns).where(GatewayCall.run_id == run_id, col(GatewayCall.call_key).in_(keys))
    ).all()
    return rows


def call_sums(session: Session, run_ids: Sequence[str]) -> dict[str, CallSums]:
    """By run; replayed answers are left out, since nobody waited for them."""
    query = (
        select(GatewayCall.run_id, func.count(), func.sum(GatewayCall.provider_s))
        .where(col(GatewayCall.run_id).in_(run_ids), GatewayCall.state == "settled")
        .where(GatewayCall.source == "bought", col(GatewayCall.judge_model_id).is_(None))
        .group_by(col(GatewayCall.run_id))
    )
    return {run_id: CallSums(int(count), float(seconds or 0)) for run_id, count, seconds in session.exec(query).all()}


def last_lines(session: Session, run_id: str, limit: int) -> Sequence[Event]:
    """The newest lines that the runner logged, in chronological order."""
    query = select(Event).where(Event.run_id == run_id, Event.type == "log").order_by(col(Event.id).desc()).limit(limit)
    return list(reversed(session.exec(query).all()))


def last_progress(session: Session, run_id: str, limit: int) -> Sequence[Event]:
    """The newest ended items as they were reported, in chronological order."""
    query = select(Event).where(Event.run_id == run_id, Event.type == "progress").order_by(col(Event.id).desc()).limit(limit)
    return list(reversed(session.exec(query).all()))


def alerts(session: Session, *, since: datetime, limit: int) -> Sequence[tuple[Alert, LlmModel | None]]:
    """Newest first, each with its model if it has one."""
    of_alert = col(LlmModel.id) == col(Alert.model_id)
    query = select(Alert, LlmModel).join(LlmModel, of_alert, isouter=True).where(col(Alert.at) >= since)
    return [(alert, model) for alert, model in session.exec(query.order_by(col(Alert.id).desc()).limit(limit)).all()]


@dataclass(frozen=True)
class RunOfModel:
    """A run without its plan."""

    id: str
    model_id: int | None
    kind: str
    status: str
    benchmarks: list[str]
    score: dict[str, Any] | None
    items_done: int
    cost_usd: float
    unpriced_calls: int
    input_tokens: int
    output_tokens: int
    created_at: datetime
    completed_at: datetime | None


_OF_MODEL: Any = [getattr(ContainerRun, name) for name in RunOfModel.__dataclass_fields__]


def of_model(session: Session, model_id: int, *, limit: int) -> list[RunOfModel]:
    """The newest runs that measure a model."""
    query = select(*_OF_MODEL).where(MEASURING, ContainerRun.model_id == model_id)
    rows = session.exec(query.order_by(col(ContainerRun.created_at).desc()).limit(limit)).all()
    return [RunOfModel(*row) for row in rows]


def newest_on(session: Session, benchmark: str, *, limit: int) -> list[RunOfModel]:
    """The newest completed runs on a benchmark."""
    named = cast(col(ContainerRun.benchmarks), Text).contains(json.dumps(benchmark), autoescape=True)
    query = select(*_OF_MODEL).where(MEASURING, ContainerRun.status == "completed", named)
    rows = session.exec(query.order_by(col(ContainerRun.id).desc()).limit(limit)).all()
    return [RunOfModel(*row) for row in rows]


def outcomes_of_runs(session: Session, run_ids: Sequence[str]) -> dict[str, dict[str, int]]:
    """The number of results by run and outcome, from the index alone."""
    query = select(ItemRow.run_id, ItemRow.outcome, func.count()).where(col(ItemRow.run_id).in_(run_ids))
    counts: dict[str, dict[str, int]] = {}
    for run_id, outcome, count in session.exec(query.group_by(ItemRow.run_id, ItemRow.outcome)).all():
        counts.setdefault(run_id, {})[outcome] = int(count)
    return counts


def output_tokens(session: Session, run_ids: Sequence[str], *, limit: int) -> list[int]:
    """Of each result that asked the model."""
    query = select(ItemRow.output_tokens).where(col(ItemRow.run_id).in_(run_ids), col(ItemRow.output_tokens) > 0)
    return [int(count) for count in session.exec(query.limit(limit)).all()]


def call_times(session: Session, run_ids: Sequence[str], *, limit: int) -> list[float]:
    """Seconds that the provider took for each answered call to the measured model; replays are left out."""
    query = select(GatewayCall.provider_s).where(col(GatewayCall.run_id).in_(run_ids), GatewayCall.state == "settled")
    query = query.where(GatewayCall.source == "bought", col(GatewayCall.judge_model_id).is_(None))
    return [float(seconds) for seconds in session.exec(query.limit(limit)).all()]


def problem_tallies(
    session: Session, run_ids: Sequence[str], benchmark: str, problem_ids: Sequence[str]
) -> dict[str, tuple[int, int]]:
    """(passed, results that count) of each problem over these runs. Each is found by its key."""
    query = (
        select(ItemRow.problem_id, ItemRow.outcome, func.count())
        .where(
            col(ItemRow.run_id).in_(run_ids), ItemRow.benchmark == benchmark, col(ItemRow.problem_id).in_(problem_ids),
            col(ItemRow.outcome).not_in(("provider_error", "infra_error")),
        )
        .group_by(col(ItemRow.problem_id), col(ItemRow.outcome))
    )  # fmt: skip
    tallies: dict[str, tuple[int, int]] = {}
    for problem_id, outcome, count in session.exec(query).all():
        passed, total = tallies.get(problem_id, (0, 0))
        tallies[problem_id] = (passed + (int(count) if outcome == "passed" else 0), total + int(count))
    return tallies


def ended_by_day(session: Session, since: datetime) -> list[tuple[str, str, int]]:
    """(day in UTC, status, number) of runs created since then."""
    moment: Any = col(ContainerRun.created_at)
    if session.get_bind().dialect.name == "postgresql":
        moment = func.timezone("UTC", moment)
    day = cast(func.date(moment), String)
    oldest = uuid7(since, bytes(10))  # ids sort by time: the index finds the first one
    recent = (col(ContainerRun.id) >= oldest, col(ContainerRun.created_at) >= since)
    query = select(day, ContainerRun.status, func.count()).where(*recent)
    rows = session.exec(query.group_by(day, ContainerRun.status)).all()
    return [(str(name), status, int(count)) for name, status, count in rows]


def names_in_use(session: Session) -> tuple[list[str], list[str]]:
    """The benchmarks and triggers that occur in runs, for filters."""
    # Cast to text because PostgreSQL cannot compare JSON values for equality.
    benchmarks = session.exec(select(cast(col(ContainerRun.benchmarks), Text)).distinct()).all()
    triggers = session.exec(select(ContainerRun.trigger_type).distinct()).all()
    return sorted({name for names in benchmarks for name in json.loads(names)}), sorted(triggers)
