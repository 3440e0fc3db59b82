"""Statements on model calls. What they add up to, the rules of the ledger, is in `orchestrator.gateway.database_ledger`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, bindparam, delete, func, insert, text, update
from sqlalchemy import select as sa_select
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col, select

from orchestrator.db.call_tables import GatewayFlight, LostSend
from orchestrator.db.tables import ContainerRun, GatewayCall

SENT = "sent"

# Statements of the path that every call takes are built once: building them costs more than running them.
_CALLS: Any = GatewayCall.__table__  # type: ignore[attr-defined]
_FLIGHTS: Any = GatewayFlight.__table__  # type: ignore[attr-defined]


def _of(table: Any) -> Any:
    return and_(table.c.run_id == bindparam("of_run"), table.c.call_key == bindparam("of_key"))


def _take_off(dialect: Any) -> Any:
    statement = dialect.insert(_FLIGHTS)
    new = {"owner": statement.excluded.owner, "until": statement.excluded.until}
    return statement.on_conflict_do_update(index_elements=["run_id", "call_key"], set_=new)


_ADD = insert(_CALLS)
_CHANGE = update(_CALLS).where(_of(_CALLS))
_MARK_SENT = update(_CALLS).where(_of(_CALLS)).values(state=bindparam("state"), tries=_CALLS.c.tries + 1)
_FLIGHT = sa_select(_FLIGHTS.c.owner, _FLIGHTS.c.until).where(_of(_FLIGHTS))
_TAKE_OFF = {"sqlite": _take_off(sqlite), "postgresql": _take_off(postgresql)}
_LAND = delete(_FLIGHTS).where(_of(_FLIGHTS))


@dataclass(frozen=True)
class Money:
    """What one run has spent, may have lost, and holds in reserve, in US dollars."""

    settled_usd: float
    lost_usd: float
    reserved_usd: float
    lost_sends: int


@dataclass(frozen=True)
class Flight:
    """Who makes a call, and until when that is believed."""

    owner: str
    until: datetime


def lock_run(session: Session, run_id: str) -> None:
    """Make those who open calls of one run take turns until the end of the transaction; SQLite has one writer anyway."""
    if session.get_bind().dialect.name == "postgresql":
        session.connection().execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:run, 0))"), {"run": run_id})


def get(session: Session, run_id: str, call_key: str) -> GatewayCall | None:
    return session.get(GatewayCall, (run_id, call_key))


def add(session: Session, **values: Any) -> None:
    """A new call, by the names of its columns."""
    session.connection().execute(_ADD, values)


def change(session: Session, run_id: str, call_key: str, **values: Any) -> None:
    """Set columns of a call that is there; raises `LookupError` when it is not."""
    _one(session, _CHANGE, run_id, call_key, values)


def mark_sent(session: Session, run_id: str, call_key: str) -> None:
    _one(session, _MARK_SENT, run_id, call_key, {"state": SENT})


def flight(session: Session, run_id: str, call_key: str) -> Flight | None:
    """Who makes this call now."""
    found = session.connection().execute(_FLIGHT, {"of_run": run_id, "of_key": call_key}).first()
    return None if found is None else Flight(found[0], found[1])


def take_off(session: Session, run_id: str, call_key: str, owner: str, until: datetime) -> None:
    """Note that `owner` makes this call now."""
    statement = _TAKE_OFF[session.get_bind().dialect.name]
    session.connection().execute(statement, {"run_id": run_id, "call_key": call_key, "owner": owner, "until": until})


def land(session: Session, run_id: str, call_key: str) -> None:
    session.connection().execute(_LAND, {"of_run": run_id, "of_key": call_key})


def _one(session: Session, statement: Any, run_id: str, call_key: str, values: dict[str, Any]) -> None:
    if session.connection().execute(statement, {"of_run": run_id, "of_key": call_key, **values}).rowcount != 1:
        raise LookupError(f"no call {call_key} of run {run_id} is in the ledger")


def extend(session: Session, owner: str, until: datetime) -> None:
    """Say that `owner` lives."""
    session.connection().execute(update(GatewayFlight).where(col(GatewayFlight.owner) == owner).values(until=until))


def flights_of(session: Session, owner: str) -> list[tuple[str, str]]:
    query = sa_select(col(GatewayFlight.run_id), col(GatewayFlight.call_key)).where(col(GatewayFlight.owner) == owner)
    return [(run_id, call_key) for run_id, call_key in session.connection().execute(query)]


def flights_overdue(session: Session, now: datetime) -> list[tuple[str, str]]:
    """Those whose owner has not said for too long that it lives."""
    query = sa_select(col(GatewayFlight.run_id), col(GatewayFlight.call_key)).where(col(GatewayFlight.until) < now)
    return [(run_id, call_key) for run_id, call_key in session.connection().execute(query.with_for_update(skip_locked=True))]


def lose(session: Session, call: GatewayCall, reason: str, now: datetime) -> None:
    """The last try of a call may have been billed."""
    session.add(
        LostSend(run_id=call.run_id, call_key=call.call_key, worst_usd=call.reserved_usd, reason=reason[:2000], at=now)
    )


def charge(session: Session, run_id: str, cost_usd: float) -> None:
    """Add to what the run is shown to have cost."""
    session.connection().execute(
        update(ContainerRun).where(col(ContainerRun.id) == run_id).values(cost_usd=ContainerRun.cost_usd + cost_usd)
    )


def money(session: Session, run_id: str) -> Money:
    spent = session.exec(
        select(func.sum(GatewayCall.cost_usd), func.sum(GatewayCall.reserved_usd)).where(GatewayCall.run_id == run_id)
    ).one()
    lost = session.exec(select(func.sum(LostSend.worst_usd), func.count()).where(LostSend.run_id == run_id)).one()
    return Money(float(spent[0] or 0), float(lost[0] or 0), float(spent[1] or 0), int(lost[1]))


def page(session: Session, run_id: str, *, limit: int, after: str | None = None) -> Sequence[Any]:
    """The calls of a run in the order of their keys, without the answers."""
    columns = [column for column in GatewayCall.__table__.columns if column.name != "answer"]  # type: ignore[attr-defined]
    query = select(*columns).where(GatewayCall.run_id == run_id).order_by(col(GatewayCall.call_key)).limit(limit)
    if after is not None:
        query = query.where(col(GatewayCall.call_key) > after)
    found: Sequence[Any] = session.exec(query).all()
    return found
