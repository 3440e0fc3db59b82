"""Statements that find runs to delete, list their protections, and delete them in pieces.

A run is deleted in two steps. `hide` removes it from its workspace in one transaction, so that nobody sees it half deleted,
and adds a `DeletedRun`. `purge` then deletes its rows in pieces small enough for others to write in between; if it is
interrupted, it continues from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Text, cast, delete, exists, func, literal_column, update
from sqlalchemy import select as sa_select
from sqlmodel import Session, SQLModel, col, select

from orchestrator.archives import queries as archive_queries
from orchestrator.archives.tables import ArchiveRow
from orchestrator.costs.queries import STORED_ANSWERS
from orchestrator.db.workspaces import workspace_filter
from orchestrator.gateway.ledger.tables import GatewayCall
from orchestrator.models.tables import LlmModel
from orchestrator.retention.tables import DeletedRun, PinnedRun
from orchestrator.runs.live import queries as event_queries
from orchestrator.runs.queries import MEASURING, WITHOUT_TASK
from orchestrator.runs.tables import Artefact, Attempt, ContainerRun, Event, ItemRow
from orchestrator.schedules.tables import Schedule, ScheduleFire

ENDED = ("completed", "failed", "cancelled")
TRASH = -1
"""The workspace of runs that are being deleted: nobody acts in it."""
WINDOW = 10
"""Number of runs newer than a rolling baseline that are compared with it together."""
PIECE = 2000
"""Rows deleted per transaction."""
_RUNS: Any = ContainerRun.__table__  # type: ignore[attr-defined]
_ROW = {"sqlite": "rowid", "postgresql": "ctid"}


@dataclass(frozen=True)
class DeletionFilter:
    """A filter for runs to delete; None means any value."""

    ids: tuple[str, ...] | None = None
    status: str | None = None
    model_id: int | None = None
    benchmark: str | None = None
    trigger: str | None = None
    batch_id: str | None = None
    ended_before: datetime | None = None


@dataclass(frozen=True)
class Amounts:
    """The storage used by runs. Database bytes count the large columns only."""

    runs: int = 0
    items: int = 0
    calls: int = 0
    events: int = 0
    artefacts: int = 0
    archives: int = 0
    bytes: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(
            *(own_amount + other_amount for own_amount, other_amount in zip(self.values(), other.values(), strict=True))
        )

    def values(self) -> tuple[Any, ...]:
        return tuple(vars(self).values())


def matching(session: Session, filters: DeletionFilter, *, limit: int, after: str | None = None) -> list[str]:
    """Ids of matching runs, oldest first. Unless ids are given, only ended measurements match."""
    query = sa_select(_RUNS.c.id).where(workspace_filter(session, _RUNS))
    if filters.ids is not None:
        query = query.where(_RUNS.c.id.in_(filters.ids))
    else:
        query = query.where(MEASURING, _RUNS.c.status.in_(ENDED), _RUNS.c.workspace_id != TRASH)
    for name in ("status", "model_id", "batch_id"):
        if (value := getattr(filters, name)) is not None:
            query = query.where(_RUNS.c[name] == value)
    if filters.trigger is not None:
        query = query.where(_RUNS.c.trigger_type == filters.trigger)
    if filters.benchmark is not None:
        query = query.where(cast(_RUNS.c.benchmarks, Text).contains(f'"{filters.benchmark}"', autoescape=True))
    if filters.ended_before is not None:
        query = query.where(_RUNS.c.completed_at < filters.ended_before)
    if after is not None:
        query = query.where(_RUNS.c.id > after)
    return [str(row.id) for row in session.connection().execute(query.order_by(_RUNS.c.id).limit(limit))]


def protections(session: Session, ids: Sequence[str], *, rolling: bool) -> dict[str, str]:
    """Why some of these runs cannot be deleted. With `rolling`, runs needed for a schedule's next verdicts are protected
    too.
    """
    reasons: dict[str, str] = {}
    if rolling:
        reasons |= dict.fromkeys(_rolling(session) & set(ids), "a schedule compares its next runs with it")
    live = sa_select(_RUNS.c.batch_id).where(_RUNS.c.batch_id.is_not(None), _RUNS.c.status.not_in(ENDED))
    reasons |= _why(session, ids, _RUNS.c.id, _RUNS.c.batch_id.in_(live), "its batch has not ended")
    unjudged = col(ScheduleFire.verdict).is_(None)
    reasons |= _why(session, ids, col(ScheduleFire.run_id), unjudged, "its schedule has not judged it yet")
    reasons |= _why(
        session, ids, col(Schedule.baseline_run_id), None, "it is the baseline of a schedule; choose another one"
    )
    reasons |= _why(session, ids, col(PinnedRun.run_id), None, "it is pinned; unpin it first")
    not_removed = col(Attempt.removed_at).is_(None)
    reasons |= _why(session, ids, col(Attempt.run_id), not_removed, "its container is not removed yet")
    return reasons | _why(session, ids, _RUNS.c.id, _RUNS.c.status.not_in(ENDED), "it has not ended; cancel it first")


def _why(
    session: Session, ids: Sequence[str], column: Any, condition: ColumnElement[bool] | None, reason: str
) -> dict[str, str]:
    query = sa_select(column).where(column.in_(ids))
    if condition is not None:
        query = query.where(condition)
    return {str(row[0]): reason for row in session.connection().execute(query)}


def _rolling(session: Session) -> set[str]:
    """Runs that the schedules of this session's workspaces compare their next runs with."""
    run_ids: set[str] = set()
    for schedule in session.exec(select(Schedule)).all():
        query = (
            sa_select(col(ScheduleFire.run_id))
            .where(
                col(ScheduleFire.workspace_id) == schedule.workspace_id,
                col(ScheduleFire.model_id) == schedule.model_id,
                col(ScheduleFire.panel_version) == schedule.panel_version,
                col(ScheduleFire.run_id).is_not(None),
            )
            .order_by(col(ScheduleFire.instant).desc())
            .limit(schedule.baseline_runs + WINDOW)
        )
        run_ids |= {str(row[0]) for row in session.connection().execute(query)}
    return run_ids


def measure(session: Session, ids: Sequence[str]) -> Amounts:
    connection = session.connection()

    def sums(column: Any, *amounts: Any) -> tuple[Any, ...]:
        row = connection.execute(
            sa_select(func.count(), *(func.sum(amount) for amount in amounts)).where(column.in_(ids))
        ).one()
        return tuple(value or 0 for value in row)

    runs, cost = sums(_RUNS.c.id, _RUNS.c.cost_usd)
    items, item_bytes = sums(col(ItemRow.run_id), func.length(_raw(ItemRow, "data")))
    calls, answer_bytes = sums(col(GatewayCall.run_id), func.length(col(GatewayCall.answer)))
    (events,) = sums(col(Event.run_id))
    artefacts, artefact_bytes = sums(col(Artefact.run_id), col(Artefact.size_bytes))
    archives, archive_bytes = sums(col(ArchiveRow.run_id), col(ArchiveRow.size_bytes))
    total = sum(int(size) for size in (item_bytes, answer_bytes, artefact_bytes, archive_bytes))
    return Amounts(runs, items, calls, events, artefacts, archives, total, float(cost))


def _raw(table: type[SQLModel], name: str) -> Any:
    """A compressed column as raw bytes."""
    return literal_column(f"{table.__tablename__}.{name}")


def hide(session: Session, run_id: str, *, by: str, now: datetime) -> bool:
    """Hides a run from everybody; False if it no longer exists. The caller must have checked `protections`."""
    run = session.exec(select(ContainerRun).where(ContainerRun.id == run_id).options(WITHOUT_TASK).with_for_update()).first()
    if run is None or run.workspace_id == TRASH:
        return False
    tries = session.exec(select(Attempt).where(Attempt.run_id == run_id).order_by(col(Attempt.number))).all()
    fires = col(ScheduleFire.run_id) == run_id
    event_queries.append(session, "deleted", now, run_id=run_id, data={"by": by})
    session.add(
        DeletedRun(
            workspace_id=run.workspace_id,
            id=run.id,
            kind=run.kind,
            model_id=run.model_id,
            batch_id=run.batch_id,
            scheduled=session.exec(select(ScheduleFire.run_id).where(fires)).first() is not None,
            status=run.status,
            day=(tries[0].dispatched_at if tries else run.created_at).date().isoformat(),
            vcpu_s=sum(attempt.vcpu_s for attempt in tries),
            gib_s=sum(attempt.gib_s for attempt in tries),
            throttled_s=sum(attempt.throttled_s for attempt in tries),
            cost_usd=run.cost_usd,
            unpriced_calls=run.unpriced_calls,
            created_at=run.created_at,
            deleted_at=now,
            deleted_by=by[:200],
        )
    )
    if run.batch_id is not None:
        archive_queries.batch_changed(session, run.batch_id, now)
    session.flush()
    gone = f"Run {run_id} was deleted on {now.date().isoformat()}."
    connection = session.connection()
    connection.execute(update(ScheduleFire).where(fires).values(run_id=None, detail=gone))
    archive = update(ArchiveRow).where(col(ArchiveRow.run_id) == run_id)
    connection.execute(archive.values(state=archive_queries.EXPIRED))
    connection.execute(update(ContainerRun).where(col(ContainerRun.id) == run_id).values(workspace_id=TRASH, batch_id=None))
    session.expire_all()
    return True


def unpurged(session: Session, limit: int) -> Sequence[DeletedRun]:
    query = select(DeletedRun).where(col(DeletedRun.purged).is_(False))
    return session.exec(query.order_by(col(DeletedRun.id)).limit(limit)).all()


def archive_of(session: Session, run_id: str) -> ArchiveRow | None:
    return session.get(ArchiveRow, run_id)


def purge(session: Session, run_id: str) -> bool:
    """Deletes some rows of a hidden run; returns whether none is left. The deletion event stays for the streams."""
    connection = session.connection()
    row_id: Any = literal_column(_ROW[connection.dialect.name])
    for column in _holders():
        condition = column == run_id
        if column.table.name == "events":
            condition &= column.table.c.type != "deleted"
        some = sa_select(row_id).select_from(column.table).where(condition).limit(PIECE)
        if connection.execute(delete(column.table).where(row_id.in_(some))).rowcount:
            return False
    connection.execute(delete(_RUNS).where(_RUNS.c.id == run_id, _RUNS.c.workspace_id == TRASH))
    connection.execute(update(DeletedRun).where(col(DeletedRun.id) == run_id).values(purged=True))
    return True


def _holders() -> list[Any]:
    """Columns with the id of a run whose rows must be deleted with it; rows that others reference come last."""
    referenced, columns = {id(_RUNS.c.id)}, []
    for table in SQLModel.metadata.sorted_tables:
        for column in table.columns:
            if any(id(key.column) in referenced for key in column.foreign_keys) and table.name != "schedule_fires":
                referenced.add(id(column))
                columns.append(column)
    return [Event.__table__.c.run_id, *reversed(columns)]  # type: ignore[attr-defined]


def deletion_of(session: Session, run_id: str) -> str | None:
    """A sentence on when and by whom a run was deleted; None if it was not."""
    row = session.exec(select(DeletedRun).where(DeletedRun.id == run_id)).first()
    return None if row is None else f"run {run_id} was deleted on {row.deleted_at.date().isoformat()} by {row.deleted_by}"


@dataclass(frozen=True)
class DeletedMembers:
    """Deleted runs of a batch and their cost."""

    runs: int = 0
    cost_usd: float = 0.0
    unpriced_calls: int = 0


def deleted_of_batches(session: Session, batch_ids: Iterable[str]) -> dict[str, DeletedMembers]:
    table: Any = DeletedRun.__table__  # type: ignore[attr-defined]
    sums = (func.count(), func.sum(table.c.cost_usd), func.sum(table.c.unpriced_calls))
    query = sa_select(table.c.batch_id, *sums).where(workspace_filter(session, table), table.c.batch_id.in_(list(batch_ids)))
    rows = session.connection().execute(query.group_by(table.c.batch_id)).all()
    return {str(row[0]): DeletedMembers(int(row[1]), float(row[2] or 0), int(row[3] or 0)) for row in rows}


def used_by_deleted(session: Session, by: str, since: datetime) -> Sequence[Any]:
    """(key, runs, vcpu_s, gib_s, throttled_s) of deleted runs, with the keys of `machine_queries.used`."""
    key: Any = {"day": DeletedRun.day, "batch": DeletedRun.batch_id, "run": DeletedRun.id}.get(by)
    key = key if key is not None else func.coalesce(LlmModel.slug, STORED_ANSWERS)
    table: Any = DeletedRun.__table__  # type: ignore[attr-defined]
    sums = [func.sum(table.c[name]).label(name) for name in ("vcpu_s", "gib_s", "throttled_s")]
    query = sa_select(key.label("key"), func.count().label("runs"), *sums).select_from(DeletedRun)
    if by in ("model", "schedule"):
        query = query.join(LlmModel, col(LlmModel.id) == col(DeletedRun.model_id), isouter=True)
        query = query.where(col(DeletedRun.kind) != "command")  # which calls no model
    if by == "schedule":
        query = query.where(col(DeletedRun.scheduled).is_(True))
    query = query.where(workspace_filter(session, table), table.c.day >= since.date().isoformat(), key.is_not(None))
    return session.connection().execute(query.group_by(key)).all()


def pin(session: Session, run_id: str, now: datetime) -> None:
    if session.get(PinnedRun, run_id) is None:
        session.add(PinnedRun(run_id=run_id, pinned_at=now))


def unpin(session: Session, run_id: str) -> None:
    session.connection().execute(delete(PinnedRun).where(col(PinnedRun.run_id) == run_id))


def is_pinned(session: Session, run_id: str) -> bool:
    return bool(session.connection().execute(sa_select(exists().where(col(PinnedRun.run_id) == run_id))).scalar())
