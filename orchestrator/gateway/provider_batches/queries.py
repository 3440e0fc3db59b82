"""Statements on the calls that wait for provider batches, on parts, and on what is reserved for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, exists, insert, update
from sqlalchemy import select as sa_select
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col, select

from orchestrator.db.prepared import Prepared
from orchestrator.gateway.ledger.tables import GatewayCall
from orchestrator.gateway.provider_batches.lots import OPEN, CallWait
from orchestrator.gateway.provider_batches.tables import BatchCall, BatchPart, BatchReserve
from orchestrator.runs.queries import OURS, WITHOUT_TASK
from orchestrator.runs.tables import ContainerRun

BATCHED = "batched"
FAILED = "failed"
ENDED_RUNS = ("completed", "failed", "cancelled")

_WAITING: Any = BatchCall.__table__  # type: ignore[attr-defined]
_PARTS: Any = BatchPart.__table__  # type: ignore[attr-defined]
_RESERVES: Any = BatchReserve.__table__  # type: ignore[attr-defined]
_CALLS: Any = GatewayCall.__table__  # type: ignore[attr-defined]
_RUNS: Any = ContainerRun.__table__  # type: ignore[attr-defined]


def _of(table: Any) -> Any:
    return and_(table.c.run_id == bindparam("of_run"), table.c.call_key == bindparam("of_key"))


def _reserve(dialect: Any) -> Any:
    statement = dialect.insert(_RESERVES)
    more = {"nano_usd": _RESERVES.c.nano_usd + statement.excluded.nano_usd}
    return statement.on_conflict_do_update(index_elements=["run_id"], set_=more)


_RESERVE = Prepared({"sqlite": _reserve(sqlite), "postgresql": _reserve(postgresql)})
_ADD = Prepared(insert(_WAITING))
_REMOVE = Prepared(delete(_WAITING).where(_of(_WAITING)))
_UNANSWERED = Prepared(sa_select(_WAITING.c.error).where(_of(_WAITING), _WAITING.c.state == CallWait.UNANSWERED.value))


@dataclass(frozen=True)
class PlacedCall:
    """A call of a part, without its request."""

    run_id: str
    call_key: str
    position: int
    size_bytes: int
    worst_nano_usd: int
    tries: int


def unanswered(connection: Connection, run_id: str, call_key: str) -> str | None:
    """Why the call got no answer from a batch; None if it was in none."""
    row = _UNANSWERED.first(connection, {"of_run": run_id, "of_key": call_key})
    return None if row is None else str(row[0])


def collect(connection: Connection, run_id: str, call_key: str, worst_nano_usd: int, **values: Any) -> None:
    """Add a call that is to be placed in a batch, and reserve its worst case."""
    same = {"run_id": run_id, "call_key": call_key, "worst_nano_usd": worst_nano_usd, "state": CallWait.COLLECTED.value}
    _ADD.run(connection, {**same, "tries": 0, "error": "", **values})
    reserve(connection, run_id, worst_nano_usd)


def reserve(connection: Connection, run_id: str, nano_usd: int) -> None:
    """Add to what the run has reserved for batches; a negative amount frees it."""
    if nano_usd:
        _RESERVE.run(connection, {"run_id": run_id, "nano_usd": nano_usd})


def forget(connection: Connection, call: PlacedCall) -> None:
    """The call has its answer."""
    if _REMOVE.run(connection, {"of_run": call.run_id, "of_key": call.call_key}):
        reserve(connection, call.run_id, -call.worst_nano_usd)


def waiting_runs(session: Session) -> Sequence[ContainerRun]:
    """Runs that wait for batches, or for room in a budget that batches hold."""
    waits = (col(ContainerRun.status) == "pending", col(ContainerRun.waiting_since).is_not(None), OURS)
    return session.exec(select(ContainerRun).where(*waits).options(WITHOUT_TASK)).all()


def lots_of(session: Session, run_id: str) -> list[str]:
    """The lots of a run's collected calls."""
    query = sa_select(_WAITING.c.lot).where(_WAITING.c.run_id == run_id, _WAITING.c.state == CallWait.COLLECTED.value)
    return [lot for (lot,) in session.connection().execute(query.distinct().order_by(_WAITING.c.lot))]


def collected(session: Session, run_id: str, lot: str, limit: int) -> list[tuple[str, int]]:
    """Keys and sizes of collected calls of a lot, in order."""
    conditions = (_WAITING.c.run_id == run_id, _WAITING.c.lot == lot, _WAITING.c.state == CallWait.COLLECTED.value)
    query = sa_select(_WAITING.c.call_key, _WAITING.c.size_bytes).where(*conditions)
    rows = session.connection().execute(query.order_by(_WAITING.c.created_at, _WAITING.c.call_key).limit(limit))
    return [(key, size) for key, size in rows]


def place(session: Session, part: BatchPart, keys: Sequence[str]) -> None:
    """Store a part with these calls of its run."""
    session.add(part)
    session.flush()
    statement = (
        update(_WAITING)
        .where(_of(_WAITING))
        .values(part_id=bindparam("of_part"), position=bindparam("at"), state=CallWait.PLACED.value)
    )
    values = [{"of_run": part.run_id, "of_key": key, "of_part": part.id, "at": at} for at, key in enumerate(keys)]
    session.connection().execute(statement, values)


def open_parts(session: Session, now: datetime) -> Sequence[BatchPart]:
    """Parts that have not ended and are due, except those of the installation that this one is a copy of."""
    inherited = exists().where(_RUNS.c.id == _PARTS.c.run_id, _RUNS.c.inherited)
    conditions = (col(BatchPart.state).in_([state.value for state in OPEN]), col(BatchPart.next_look_at) <= now, ~inherited)
    return session.exec(select(BatchPart).where(*conditions).order_by(col(BatchPart.id))).all()


def hurry(session: Session, now: datetime) -> None:
    """Make parts due whose run has ended and whose batch is not cancelled yet."""
    over = exists().where(_RUNS.c.id == _PARTS.c.run_id, _RUNS.c.status.in_(ENDED_RUNS))
    open_one = _PARTS.c.state.in_([state.value for state in OPEN])
    late = (_PARTS.c.next_look_at > now, _PARTS.c.cancel_sent.is_(False))
    session.connection().execute(update(_PARTS).where(open_one, *late, over).values(next_look_at=now))


def lock_part(session: Session, part_id: str) -> BatchPart | None:
    return session.exec(select(BatchPart).where(BatchPart.id == part_id).with_for_update()).first()


def run_has_ended(session: Session, run_id: str) -> bool:
    """Also if it was deleted."""
    status = session.connection().execute(sa_select(_RUNS.c.status).where(_RUNS.c.id == run_id)).scalar()
    return status is None or status in ENDED_RUNS


def requests(session: Session, part_id: str, first: int, limit: int) -> list[tuple[int, bytes]]:
    """Positions and packed bodies of a part's calls, from a position on."""
    query = sa_select(_WAITING.c.position, _WAITING.c.body).where(
        _WAITING.c.part_id == part_id, _WAITING.c.position >= first
    )
    rows = session.connection().execute(query.order_by(_WAITING.c.position).limit(limit))
    return [(position, body) for position, body in rows]


def placed(session: Session, part_id: str, positions: Collection[int] | None = None) -> list[PlacedCall]:
    """Calls of a part that have no answer yet; all of them, or those at these positions."""
    columns = [_WAITING.c[name] for name in PlacedCall.__dataclass_fields__]
    query = sa_select(*columns).where(_WAITING.c.part_id == part_id, _WAITING.c.state == CallWait.PLACED.value)
    if positions is not None:
        query = query.where(_WAITING.c.position.in_(positions))
    return [PlacedCall(*row) for row in session.connection().execute(query)]


def collect_again(session: Session, call: PlacedCall) -> None:
    """The call is to be placed in another part."""
    values = {"state": CallWait.COLLECTED.value, "part_id": None, "position": None, "tries": call.tries + 1}
    _change(session, call, values)


def leave_unanswered(session: Session, call: PlacedCall, error: str) -> None:
    """The call gets no answer from a batch: its reserve is freed, and it may be opened again."""
    _change(session, call, {"state": CallWait.UNANSWERED.value, "tries": call.tries + 1, "error": error})
    _free(session, call.run_id, call.call_key, call.worst_nano_usd, error)


def _change(session: Session, call: PlacedCall, values: dict[str, Any]) -> None:
    conditions = (_WAITING.c.run_id == call.run_id, _WAITING.c.call_key == call.call_key)
    session.connection().execute(update(_WAITING).where(*conditions).values(**values))


def _free(session: Session, run_id: str, call_key: str, worst_nano_usd: int, error: str) -> None:
    connection = session.connection()
    reserve(connection, run_id, -worst_nano_usd)
    batched = (_CALLS.c.run_id == run_id, _CALLS.c.call_key == call_key, _CALLS.c.state == BATCHED)
    connection.execute(update(_CALLS).where(*batched).values(state=FAILED, reserved_usd=0.0, error=error))


def release_collected(session: Session, limit: int, error: str) -> int:
    """Free calls that no part has and whose run has ended; returns how many."""
    connection = session.connection()
    # Not a join: SQLite would begin it with all runs that have ended.
    ended = exists().where(_RUNS.c.id == _WAITING.c.run_id, _RUNS.c.status.in_(ENDED_RUNS))
    query = (
        sa_select(_WAITING.c.run_id, _WAITING.c.call_key, _WAITING.c.worst_nano_usd)
        .where(_WAITING.c.state == CallWait.COLLECTED.value, ended)
        .limit(limit)
    )
    rows = list(connection.execute(query))
    for run_id, call_key, worst_nano_usd in rows:
        _free(session, run_id, call_key, worst_nano_usd, error)
        _REMOVE.run(connection, {"of_run": run_id, "of_key": call_key})
    return len(rows)


def waits(session: Session, run_id: str) -> bool:
    """Whether a call of the run is collected or placed."""
    states = [CallWait.COLLECTED.value, CallWait.PLACED.value]
    query = sa_select(_WAITING.c.call_key).where(_WAITING.c.run_id == run_id, _WAITING.c.state.in_(states))
    return session.connection().execute(query.limit(1)).first() is not None


def parts_since(session: Session, run_id: str, since: datetime) -> Sequence[BatchPart]:
    """The run's parts of its present round."""
    conditions = (BatchPart.run_id == run_id, col(BatchPart.created_at) >= since)
    return session.exec(select(BatchPart).where(*conditions).order_by(col(BatchPart.id))).all()


def known_remotes(session: Session, ids: Collection[str]) -> set[str]:
    """Which of these batches at providers are known to belong to a part."""
    query = sa_select(_PARTS.c.remote_id).where(_PARTS.c.remote_id.in_(ids))
    return {remote for (remote,) in session.connection().execute(query)}
