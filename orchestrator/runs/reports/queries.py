"""Queries that only pages need: filtered lists, series of scores, the items of a run without their texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Text, cast, func
from sqlmodel import Session, col, select

from orchestrator.alerts.tables import Alert
from orchestrator.gateway.ledger.tables import GatewayCall
from orchestrator.models.tables import LlmModel
from orchestrator.runs.queries import MEASURING, WITHOUT_TASK
from orchestrator.runs.tables import ContainerRun, Event, ItemRow


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


class Verdict(NamedTuple):
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


def under_way(session: Session, limit: int = 50) -> Sequence[ContainerRun]:
    """Runs that have not ended: first those with a container, then the queue, oldest first."""
    waiting = col(ContainerRun.status).in_(("pending", "starting", "running"))
    query = select(ContainerRun).where(MEASURING, waiting).options(WITHOUT_TASK)
    return session.exec(query.order_by(col(ContainerRun.status).desc(), col(ContainerRun.id)).limit(limit)).all()


def scored(session: Session, *, per_series: int, model_id: int | None = None) -> list[ScoredRun]:
    """The newest finished runs of every (model, benchmarks), newest first. Graded stored answers are not included."""
    series = (col(ContainerRun.model_id), cast(col(ContainerRun.benchmarks), Text))
    position = func.row_number().over(partition_by=series, order_by=col(ContainerRun.id).desc()).label("place")
    numbered = select(ContainerRun.id, position).where(ContainerRun.status == "completed", ContainerRun.kind == "benchmark")
    if model_id is not None:
        numbered = numbered.where(ContainerRun.model_id == model_id)
    newest = numbered.subquery()
    query = (
        select(*_SCORED)
        .join(newest, col(ContainerRun.id) == newest.c.id)
        .where(newest.c.place <= per_series)
        .order_by(col(ContainerRun.id).desc())
    )
    return [
        ScoredRun(id_, model_id, tuple(benchmarks), score, *rest)
        for id_, model_id, benchmarks, score, *rest in session.exec(query).all()
        if score is not None and score.get("estimate") is not None
    ]


_LINE: Any = [getattr(ItemRow, name) for name in ItemLine.__dataclass_fields__]
_VERDICT: Any = [getattr(ItemRow, name) for name in Verdict._fields]
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


def verdicts(session: Session, run_id: str) -> list[Verdict]:
    """Every result of a run in plan order, in the short form."""
    query = select(*_VERDICT).where(ItemRow.run_id == run_id).order_by(col(ItemRow.position))
    return [Verdict._make(row) for row in session.connection().execute(query)]


def neighbours(session: Session, run_id: str, position: int, outcome: str | None) -> tuple[int | None, int | None]:
    """Positions of the previous and next result, optionally among those with the given outcome."""
    base = [ItemRow.run_id == run_id, *([ItemRow.outcome == outcome] if outcome else [])]
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


def last_lines(session: Session, run_id: str, limit: int) -> Sequence[Event]:
    """The newest lines that the runner logged, in chronological order."""
    query = select(Event).where(Event.run_id == run_id, Event.type == "log").order_by(col(Event.id).desc()).limit(limit)
    return list(reversed(session.exec(query).all()))


def alerts(session: Session, *, since: datetime, limit: int) -> Sequence[tuple[Alert, LlmModel | None]]:
    """Newest first, each with its model if it has one."""
    of_alert = col(LlmModel.id) == col(Alert.model_id)
    query = select(Alert, LlmModel).join(LlmModel, of_alert, isouter=True).where(col(Alert.at) >= since)
    return [(alert, model) for alert, model in session.exec(query.order_by(col(Alert.id).desc()).limit(limit)).all()]


def names_in_use(session: Session) -> tuple[list[str], list[str]]:
    """The benchmarks and triggers that occur in runs, for filters."""
    # Cast to text because PostgreSQL cannot compare JSON values for equality.
    benchmarks = session.exec(select(cast(col(ContainerRun.benchmarks), Text)).distinct()).all()
    triggers = session.exec(select(ContainerRun.trigger_type).distinct()).all()
    return sorted({name for names in benchmarks for name in json.loads(names)}), sorted(triggers)
