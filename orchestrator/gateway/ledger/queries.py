"""Statements on model calls, without sessions: every call passes here twice. What they add up to, the rules of the ledger,
is in `orchestrator.gateway.ledger.database`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, func, insert, text, update
from sqlalchemy import select as sa_select
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session

from orchestrator.db.prepared import Prepared
from orchestrator.gateway.ledger import spending_queries
from orchestrator.gateway.ledger.tables import DaySpending, GatewayCall, GatewayFlight, LostSend
from orchestrator.models.tables import LlmModel
from orchestrator.runs.tables import Attempt, ContainerRun

SENT = "sent"
SETTLED = "settled"
RUNNING = "running"

_CALLS: Any = GatewayCall.__table__  # type: ignore[attr-defined]
_FLIGHTS: Any = GatewayFlight.__table__  # type: ignore[attr-defined]
_RUNS: Any = ContainerRun.__table__  # type: ignore[attr-defined]
_MODELS: Any = LlmModel.__table__  # type: ignore[attr-defined]
_ATTEMPTS: Any = Attempt.__table__  # type: ignore[attr-defined]
_LOST: Any = LostSend.__table__  # type: ignore[attr-defined]
_DAYS: Any = DaySpending.__table__  # type: ignore[attr-defined]


_NOTHING: dict[str, float] = {
    "calls": 0,
    "input_tokens": 0,
    "output_tokens": 0,
    "settled_usd": 0.0,
    "lost_usd": 0.0,
    "lost_sends": 0,
    "unpriced_calls": 0,
}
"""The sums of a day, by the names of their columns."""


def _of(table: Any) -> Any:
    return and_(table.c.run_id == bindparam("of_run"), table.c.call_key == bindparam("of_key"))


def _take_off(dialect: Any) -> Any:
    statement = dialect.insert(_FLIGHTS)
    new = {"owner": statement.excluded.owner, "until": statement.excluded.until}
    return statement.on_conflict_do_update(index_elements=["run_id", "call_key"], set_=new)


def _book(dialect: Any) -> Any:
    names = tuple(_NOTHING)
    of_run = {
        name: sa_select(_RUNS.c[name]).where(_RUNS.c.id == bindparam("of_run")).scalar_subquery()
        for name in ("workspace_id", "model_id")
    }
    statement = dialect.insert(_DAYS).values(day=bindparam("day"), **of_run, **{each: bindparam(each) for each in names})
    sums = {each: _DAYS.c[each] + statement.excluded[each] for each in names}
    return statement.on_conflict_do_update(index_elements=["day", "workspace_id", "model_id"], set_=sums)


_BOOK = Prepared({"sqlite": _book(sqlite), "postgresql": _book(postgresql)})
_CALLER = (
    sa_select(
        _ATTEMPTS.c.token_hash,
        _ATTEMPTS.c.number,
        _RUNS.c.id,
        _RUNS.c.kind,
        _RUNS.c.workspace_id,
        _RUNS.c.user_id,
        _RUNS.c.budget_usd,
        _RUNS.c.reuse_answers,
        _MODELS.c.slug,
        _MODELS.c.provider,
        _MODELS.c.name,
        _MODELS.c.params,
        _MODELS.c.input_price,
        _MODELS.c.output_price,
        _MODELS.c.cached_input_price,
        _MODELS.c.cache_write_price,
        _MODELS.c.prices_entered_at,
    )
    .join_from(_ATTEMPTS, _RUNS, and_(_RUNS.c.id == _ATTEMPTS.c.run_id, _RUNS.c.attempt == _ATTEMPTS.c.number))
    .join(_MODELS, _MODELS.c.id == _RUNS.c.model_id)
    .where(_ATTEMPTS.c.token_hash == bindparam("digest"), _RUNS.c.status == RUNNING)
)
_LOOK = Prepared(
    sa_select(_RUNS.c.status, _RUNS.c.attempt, _CALLS.c.state, _CALLS.c.request_hash, _CALLS.c.answer)
    .join_from(_RUNS, _CALLS, and_(_CALLS.c.run_id == _RUNS.c.id, _CALLS.c.call_key == bindparam("of_key")), isouter=True)
    .where(_RUNS.c.id == bindparam("of_run"))
)
_ADD = Prepared(insert(_CALLS))
_REPLAYED = Prepared(update(_CALLS).where(_of(_CALLS)).values(replays=_CALLS.c.replays + 1))
_CHANGE = Prepared(update(_CALLS).where(_of(_CALLS)))
_SETTLE = Prepared(update(_CALLS).where(_of(_CALLS), _CALLS.c.state != SETTLED))
_UNDER_WAY = Prepared(sa_select(_CALLS.c.state, _CALLS.c.reserved_usd).where(_of(_CALLS)))
_LOSE = insert(_LOST)
_MARK_SENT = Prepared(update(_CALLS).where(_of(_CALLS)).values(state=bindparam("state"), tries=_CALLS.c.tries + 1))
_FLIGHT = Prepared(sa_select(_FLIGHTS.c.owner, _FLIGHTS.c.until).where(_of(_FLIGHTS)))
_TAKE_OFF = Prepared({"sqlite": _take_off(sqlite), "postgresql": _take_off(postgresql)})
_LAND = Prepared(delete(_FLIGHTS).where(_of(_FLIGHTS)))
_CHARGE = Prepared(
    update(_RUNS).where(_RUNS.c.id == bindparam("of_run")).values(cost_usd=_RUNS.c.cost_usd + bindparam("more_usd"))
)
_UNPRICED = Prepared(
    update(_RUNS).where(_RUNS.c.id == bindparam("of_run")).values(unpriced_calls=_RUNS.c.unpriced_calls + 1)
)
_SETTLED_USD = Prepared(sa_select(_RUNS.c.cost_usd).where(_RUNS.c.id == bindparam("of_run")))
_LOST_USD = Prepared(sa_select(func.sum(_LOST.c.worst_usd), func.count()).where(_LOST.c.run_id == bindparam("of_run")))
_RESERVED_USD = Prepared(
    sa_select(func.sum(_CALLS.c.reserved_usd))
    .join_from(_FLIGHTS, _CALLS, and_(_CALLS.c.run_id == _FLIGHTS.c.run_id, _CALLS.c.call_key == _FLIGHTS.c.call_key))
    .where(_FLIGHTS.c.run_id == bindparam("of_run"))
)


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


@dataclass(frozen=True)
class UnderWay:
    state: str
    reserved_usd: float


@dataclass(frozen=True)
class Seen:
    """A call as the book has it, if it has it, and whether the attempt that asks is the one that carries out the run."""

    runs: bool
    state: str | None
    request_hash: str | None
    answer: bytes | None


def caller(session: Session, token_digest: str) -> Any:
    """What the gateway needs to know of the running run whose current attempt has this token, or None."""
    return session.connection().execute(_CALLER, {"digest": token_digest}).first()


def has_settled(session: Session, run_id: str, call_key: str) -> bool:
    """Whether this call of the run has its answer."""
    wanted = (_CALLS.c.run_id == run_id, _CALLS.c.call_key == call_key, _CALLS.c.state == SETTLED)
    return session.connection().execute(sa_select(_CALLS.c.run_id).where(*wanted)).first() is not None


def look(connection: Connection, run_id: str, call_key: str, attempt: int | None) -> Seen:
    found = _LOOK.first(connection, {"of_run": run_id, "of_key": call_key})
    if found is None:
        return Seen(False, None, None, None)
    status, number, *call = found
    return Seen(attempt is None or (status == RUNNING and number == attempt), *call)


def replayed(connection: Connection, run_id: str, call_key: str) -> None:
    _REPLAYED.run(connection, {"of_run": run_id, "of_key": call_key})


def lock_run(connection: Connection, run_id: str) -> None:
    """Make those who open calls of one run take turns until the end of the transaction; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:run, 0))"), {"run": run_id})


def under_way(connection: Connection, run_id: str, call_key: str) -> UnderWay | None:
    """A call as those need it who bring it to an end."""
    found = _UNDER_WAY.first(connection, {"of_run": run_id, "of_key": call_key})
    return None if found is None else UnderWay(found[0], float(found[1]))


def add(connection: Connection, **values: Any) -> None:
    """A new call, by the names of its columns."""
    _ADD.run(connection, values)


def change(connection: Connection, run_id: str, call_key: str, **values: Any) -> None:
    """Set columns of a call that is there; raises `LookupError` when it is not."""
    _one(connection, _CHANGE, run_id, call_key, values)


def mark_sent(connection: Connection, run_id: str, call_key: str) -> None:
    _one(connection, _MARK_SENT, run_id, call_key, {"state": SENT})


def flight(connection: Connection, run_id: str, call_key: str) -> Flight | None:
    """Who makes this call now."""
    found = _FLIGHT.first(connection, {"of_run": run_id, "of_key": call_key})
    return None if found is None else Flight(found[0], found[1])


def take_off(connection: Connection, run_id: str, call_key: str, owner: str, until: datetime) -> None:
    """Note that `owner` makes this call now."""
    _TAKE_OFF.run(connection, {"run_id": run_id, "call_key": call_key, "owner": owner, "until": until})


def land(connection: Connection, run_id: str, call_key: str) -> None:
    _LAND.run(connection, {"of_run": run_id, "of_key": call_key})


def _one(connection: Connection, statement: Prepared, run_id: str, call_key: str, values: dict[str, Any]) -> None:
    if statement.run(connection, {"of_run": run_id, "of_key": call_key, **values}) != 1:
        raise LookupError(f"no call {call_key} of run {run_id} is in the ledger")


def settle(connection: Connection, run_id: str, call_key: str, **values: Any) -> bool:
    """Store the end of a call; False when it is stored already."""
    return _SETTLE.run(connection, {"of_run": run_id, "of_key": call_key, **values}) == 1


def extend(connection: Connection, owner: str, until: datetime) -> None:
    """Say that `owner` lives."""
    connection.execute(update(_FLIGHTS).where(_FLIGHTS.c.owner == owner).values(until=until))


def flights_of(connection: Connection, owner: str) -> list[tuple[str, str]]:
    query = sa_select(_FLIGHTS.c.run_id, _FLIGHTS.c.call_key).where(_FLIGHTS.c.owner == owner)
    return [(run_id, call_key) for run_id, call_key in connection.execute(query)]


def flights_overdue(connection: Connection, now: datetime) -> list[tuple[str, str]]:
    """Those whose owner has not said for too long that it lives."""
    query = sa_select(_FLIGHTS.c.run_id, _FLIGHTS.c.call_key).where(_FLIGHTS.c.until < now)
    return [(run_id, call_key) for run_id, call_key in connection.execute(query.with_for_update(skip_locked=True))]


def lose(connection: Connection, run_id: str, call_key: str, worst_usd: float, reason: str, now: datetime) -> None:
    """The last try of a call may have been billed."""
    book(connection, run_id, now, lost_usd=worst_usd, lost_sends=1)
    values = {"run_id": run_id, "call_key": call_key, "worst_usd": worst_usd, "reason": reason[:2000], "at": now}
    connection.execute(_LOSE, values)


def charge(connection: Connection, run_id: str, cost_usd: float) -> None:
    """Add to what the run is shown to have cost."""
    _CHARGE.run(connection, {"of_run": run_id, "more_usd": cost_usd})


def count_unpriced(connection: Connection, run_id: str) -> None:
    """One more call of the run of which nobody knows the cost."""
    _UNPRICED.run(connection, {"of_run": run_id})


def money(connection: Connection, run_id: str) -> Money:
    """What was settled is kept as a sum and only calls under way hold a reserve: this does not grow with the run."""
    run = {"of_run": run_id}
    (settled,) = _SETTLED_USD.first(connection, run) or (0,)
    lost_usd, lost_sends = _LOST_USD.first(connection, run) or (0, 0)
    (reserved,) = _RESERVED_USD.first(connection, run) or (0,)
    return Money(float(settled or 0), float(lost_usd or 0), float(reserved or 0), int(lost_sends))


def book(connection: Connection, run_id: str, now: datetime, **more: float) -> None:
    """Add to the sums of the day, by the names of their columns."""
    day = now.date().isoformat()
    values = {**_NOTHING, **more, "of_run": run_id, "day": day}
    _BOOK.run(connection, values)
    settled, lost = more.get("settled_usd", 0.0), more.get("lost_usd", 0.0)
    if settled or lost:
        spending_queries.book(connection, run_id, day, settled_usd=settled, lost_usd=lost)
