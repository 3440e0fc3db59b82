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

from orchestrator.db.call_tables import DaySpending, GatewayFlight, LostSend
from orchestrator.db.tables import Attempt, ContainerRun, GatewayCall, LlmModel

SENT = "sent"
RUNNING = "running"

# Statements of the path that every call takes are built once: building them costs more than running them.
_CALLS: Any = GatewayCall.__table__  # type: ignore[attr-defined]
_FLIGHTS: Any = GatewayFlight.__table__  # type: ignore[attr-defined]
_RUNS: Any = ContainerRun.__table__  # type: ignore[attr-defined]
_MODELS: Any = LlmModel.__table__  # type: ignore[attr-defined]
_ATTEMPTS: Any = Attempt.__table__  # type: ignore[attr-defined]
_LOST: Any = LostSend.__table__  # type: ignore[attr-defined]
_DAYS: Any = DaySpending.__table__  # type: ignore[attr-defined]


def _of(table: Any) -> Any:
    return and_(table.c.run_id == bindparam("of_run"), table.c.call_key == bindparam("of_key"))


def _take_off(dialect: Any) -> Any:
    statement = dialect.insert(_FLIGHTS)
    new = {"owner": statement.excluded.owner, "until": statement.excluded.until}
    return statement.on_conflict_do_update(index_elements=["run_id", "call_key"], set_=new)


def _book(dialect: Any) -> Any:
    names = ("calls", "input_tokens", "output_tokens", "settled_usd", "lost_usd", "lost_sends")
    model = sa_select(_RUNS.c.model_id).where(_RUNS.c.id == bindparam("of_run")).scalar_subquery()
    statement = dialect.insert(_DAYS).values(
        day=bindparam("day"), model_id=model, **{each: bindparam(each) for each in names}
    )
    sums = {each: _DAYS.c[each] + statement.excluded[each] for each in names}
    return statement.on_conflict_do_update(index_elements=["day", "model_id"], set_=sums)


_BOOK = {"sqlite": _book(sqlite), "postgresql": _book(postgresql)}
_OF_DAY = sa_select(func.sum(_DAYS.c.settled_usd + _DAYS.c.lost_usd)).where(_DAYS.c.day == bindparam("of_day"))
_CALLER = (
    sa_select(
        _ATTEMPTS.c.token_hash,
        _ATTEMPTS.c.number,
        _RUNS.c.id,
        _RUNS.c.budget_usd,
        _MODELS.c.slug,
        _MODELS.c.provider,
        _MODELS.c.name,
        _MODELS.c.params,
        _MODELS.c.input_price,
        _MODELS.c.output_price,
        _MODELS.c.cached_input_price,
        _MODELS.c.prices_entered_at,
    )
    .join_from(_ATTEMPTS, _RUNS, and_(_RUNS.c.id == _ATTEMPTS.c.run_id, _RUNS.c.attempt == _ATTEMPTS.c.number))
    .join(_MODELS, _MODELS.c.id == _RUNS.c.model_id)
    .where(_ATTEMPTS.c.token_hash == bindparam("digest"), _RUNS.c.status == RUNNING)
)
_LOOK = (
    sa_select(_RUNS.c.status, _RUNS.c.attempt, _CALLS.c.state, _CALLS.c.request_hash, _CALLS.c.answer)
    .join_from(_RUNS, _CALLS, and_(_CALLS.c.run_id == _RUNS.c.id, _CALLS.c.call_key == bindparam("of_key")), isouter=True)
    .where(_RUNS.c.id == bindparam("of_run"))
)
_ADD = insert(_CALLS)
_REPLAYED = update(_CALLS).where(_of(_CALLS)).values(replays=_CALLS.c.replays + 1)
_CHANGE = update(_CALLS).where(_of(_CALLS))
_MARK_SENT = update(_CALLS).where(_of(_CALLS)).values(state=bindparam("state"), tries=_CALLS.c.tries + 1)
_FLIGHT = sa_select(_FLIGHTS.c.owner, _FLIGHTS.c.until).where(_of(_FLIGHTS))
_TAKE_OFF = {"sqlite": _take_off(sqlite), "postgresql": _take_off(postgresql)}
_LAND = delete(_FLIGHTS).where(_of(_FLIGHTS))
_CHARGE = update(_RUNS).where(_RUNS.c.id == bindparam("of_run")).values(cost_usd=_RUNS.c.cost_usd + bindparam("more_usd"))
_SETTLED_USD = sa_select(_RUNS.c.cost_usd).where(_RUNS.c.id == bindparam("of_run"))
_LOST_USD = sa_select(func.sum(_LOST.c.worst_usd), func.count()).where(_LOST.c.run_id == bindparam("of_run"))
_RESERVED_USD = (
    sa_select(func.sum(_CALLS.c.reserved_usd))
    .join_from(_FLIGHTS, _CALLS, and_(_CALLS.c.run_id == _FLIGHTS.c.run_id, _CALLS.c.call_key == _FLIGHTS.c.call_key))
    .where(_FLIGHTS.c.run_id == bindparam("of_run"))
)
_ALL_RESERVED_USD = sa_select(func.sum(_CALLS.c.reserved_usd)).join_from(
    _FLIGHTS, _CALLS, and_(_CALLS.c.run_id == _FLIGHTS.c.run_id, _CALLS.c.call_key == _FLIGHTS.c.call_key)
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
class Seen:
    """A call as the book has it, if it has it, and whether the attempt that asks is the one that carries out the run."""

    runs: bool
    state: str | None
    request_hash: str | None
    answer: bytes | None


def caller(session: Session, token_digest: str) -> Any:
    """What the gateway needs to know of the running run whose current attempt has this token, or None."""
    return session.connection().execute(_CALLER, {"digest": token_digest}).first()


def look(session: Session, run_id: str, call_key: str, attempt: int | None) -> Seen:
    found = session.connection().execute(_LOOK, {"of_run": run_id, "of_key": call_key}).first()
    if found is None:
        return Seen(False, None, None, None)
    status, number, *call = found
    return Seen(attempt is None or (status == RUNNING and number == attempt), *call)


def replayed(session: Session, run_id: str, call_key: str) -> None:
    session.connection().execute(_REPLAYED, {"of_run": run_id, "of_key": call_key})


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
    book(session, call.run_id, now, lost_usd=call.reserved_usd, lost_sends=1)
    session.add(
        LostSend(run_id=call.run_id, call_key=call.call_key, worst_usd=call.reserved_usd, reason=reason[:2000], at=now)
    )


def charge(session: Session, run_id: str, cost_usd: float) -> None:
    """Add to what the run is shown to have cost."""
    session.connection().execute(_CHARGE, {"of_run": run_id, "more_usd": cost_usd})


def money(session: Session, run_id: str) -> Money:
    """What was settled is kept as a sum and only calls under way hold a reserve: this does not grow with the run."""
    connection, run = session.connection(), {"of_run": run_id}
    settled = connection.execute(_SETTLED_USD, run).scalar()
    lost_usd, lost_sends = connection.execute(_LOST_USD, run).one()
    reserved = connection.execute(_RESERVED_USD, run).scalar()
    return Money(float(settled or 0), float(lost_usd or 0), float(reserved or 0), int(lost_sends))


def book(session: Session, run_id: str, now: datetime, **more: float) -> None:
    """Add to the sums of the day, by the names of their columns."""
    nothing = {"calls": 0, "input_tokens": 0, "output_tokens": 0, "settled_usd": 0.0, "lost_usd": 0.0, "lost_sends": 0}
    values = {**nothing, **more, "of_run": run_id, "day": now.date().isoformat()}
    session.connection().execute(_BOOK[session.get_bind().dialect.name], values)


def spent_on(session: Session, now: datetime) -> float:
    """What all models cost on this day, lost sends included, in US dollars."""
    return float(session.connection().execute(_OF_DAY, {"of_day": now.date().isoformat()}).scalar() or 0)


def reserved(session: Session) -> float:
    """What all calls under way may cost."""
    return float(session.connection().execute(_ALL_RESERVED_USD).scalar() or 0)


def spending(session: Session, *, since: str, by_day: bool) -> Sequence[Any]:
    """Sums per day and model, or per model alone, newest or dearest first."""
    slug = _MODELS.c.slug.label("model")
    sums = [func.sum(column).label(column.name) for column in _DAYS.columns if column.name not in ("day", "model_id")]
    keys = [_DAYS.c.day, slug] if by_day else [slug]
    order = [_DAYS.c.day.desc(), slug] if by_day else [func.sum(_DAYS.c.settled_usd).desc(), slug]
    query = sa_select(*keys, *sums).join_from(_DAYS, _MODELS, _MODELS.c.id == _DAYS.c.model_id)
    found: Sequence[Any] = (
        session.connection().execute(query.where(_DAYS.c.day >= since).group_by(*keys).order_by(*order)).all()
    )
    return found


def past_runs(session: Session, model_id: int, limit: int = 200) -> Sequence[Any]:
    """Completed runs of a model, newest first, as far as a quote needs them."""
    columns = ("benchmarks", "items_done", "concurrency", "input_tokens", "output_tokens", "started_at", "completed_at")
    query = sa_select(*(_RUNS.c[name] for name in columns)).where(
        _RUNS.c.model_id == model_id, _RUNS.c.status == "completed", _RUNS.c.items_done > 0, _RUNS.c.retry_of.is_(None)
    )
    found: Sequence[Any] = session.connection().execute(query.order_by(_RUNS.c.id.desc()).limit(limit)).all()
    return found


def lost_by_key(session: Session, run_id: str) -> dict[str, int]:
    """How many tries of each call may have been billed for nothing; calls without any are left out."""
    query = sa_select(_LOST.c.call_key, func.count()).where(_LOST.c.run_id == run_id).group_by(_LOST.c.call_key)
    return {call_key: int(count) for call_key, count in session.connection().execute(query)}


def page(session: Session, run_id: str, *, limit: int, after: str | None = None) -> Sequence[Any]:
    """The calls of a run in the order of their keys, without the answers."""
    columns = [column for column in GatewayCall.__table__.columns if column.name != "answer"]  # type: ignore[attr-defined]
    query = select(*columns).where(GatewayCall.run_id == run_id).order_by(col(GatewayCall.call_key)).limit(limit)
    if after is not None:
        query = query.where(col(GatewayCall.call_key) > after)
    found: Sequence[Any] = session.exec(query).all()
    return found
