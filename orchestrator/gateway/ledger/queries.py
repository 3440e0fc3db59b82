"""Statements on model calls, on plain connections: every call runs them twice. The rules of the ledger are in `database`.

A flight is a row that names the process making a call now, and the time until which that is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, bindparam, case, delete, insert, text, update
from sqlalchemy import select as sa_select
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session

from orchestrator.db.prepared import Prepared
from orchestrator.gateway.ledger.tables import GatewayCall, GatewayFlight
from orchestrator.models.tables import LlmModel
from orchestrator.runs.tables import Attempt, ContainerRun

SENT = "sent"
SETTLED = "settled"
BOUGHT = "bought"
RUNNING = "running"

_CALLS: Any = GatewayCall.__table__  # type: ignore[attr-defined]
_FLIGHTS: Any = GatewayFlight.__table__  # type: ignore[attr-defined]
_RUNS: Any = ContainerRun.__table__  # type: ignore[attr-defined]
_MODELS: Any = LlmModel.__table__  # type: ignore[attr-defined]
_ATTEMPTS: Any = Attempt.__table__  # type: ignore[attr-defined]
_KEPT = _CALLS.alias("kept")
_USED = _CALLS.alias("used")
_OWN: Any = _RUNS.alias("own")
_OTHER: Any = _RUNS.alias("other")


def _of(table: Any) -> Any:
    return and_(table.c.run_id == bindparam("of_run"), table.c.call_key == bindparam("of_key"))


def _add_flight(dialect: Any) -> Any:
    statement = dialect.insert(_FLIGHTS)
    new = {"owner": statement.excluded.owner, "until": statement.excluded.until}
    return statement.on_conflict_do_update(index_elements=["run_id", "call_key"], set_=new)


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
        _RUNS.c.batch,
        _MODELS.c.slug,
        _MODELS.c.provider,
        _MODELS.c.name,
        _MODELS.c.params,
        _MODELS.c.input_price,
        _MODELS.c.output_price,
        _MODELS.c.cached_input_price,
        _MODELS.c.cache_write_price,
        _MODELS.c.reasoning_price,
        _MODELS.c.batch_input_price,
        _MODELS.c.batch_output_price,
        _MODELS.c.long_prompt_prices,
        _MODELS.c.prices_entered_at,
    )
    .join_from(_ATTEMPTS, _RUNS, and_(_RUNS.c.id == _ATTEMPTS.c.run_id, _RUNS.c.attempt == _ATTEMPTS.c.number))
    .join(_MODELS, _MODELS.c.id == _RUNS.c.model_id, isouter=True)
    .where(_ATTEMPTS.c.token_hash == bindparam("digest"), _RUNS.c.status == RUNNING)
)
_LOOK = Prepared(
    sa_select(_RUNS.c.status, _RUNS.c.attempt, _CALLS.c.state, _CALLS.c.request_hash, _CALLS.c.answer)
    .join_from(_RUNS, _CALLS, and_(_CALLS.c.run_id == _RUNS.c.id, _CALLS.c.call_key == bindparam("of_key")), isouter=True)
    .where(_RUNS.c.id == bindparam("of_run"))
)
_ADD = Prepared(insert(_CALLS))
_COUNT_REPLAY = Prepared(update(_CALLS).where(_of(_CALLS)).values(replays=_CALLS.c.replays + 1))
_CHANGE = Prepared(update(_CALLS).where(_of(_CALLS)))
_SETTLE = Prepared(update(_CALLS).where(_of(_CALLS), _CALLS.c.state != SETTLED))
_UNDER_WAY = Prepared(sa_select(_CALLS.c.state, _CALLS.c.reserved_usd).where(_of(_CALLS)))
_MARK_SENT = Prepared(update(_CALLS).where(_of(_CALLS)).values(state=bindparam("state"), tries=_CALLS.c.tries + 1))
_FLIGHT = Prepared(sa_select(_FLIGHTS.c.owner, _FLIGHTS.c.until).where(_of(_FLIGHTS)))
_ADD_FLIGHT = Prepared({"sqlite": _add_flight(sqlite), "postgresql": _add_flight(postgresql)})
_REMOVE_FLIGHT = Prepared(delete(_FLIGHTS).where(_of(_FLIGHTS)))
_REUSABLE = (
    sa_select(_KEPT.c.run_id, _KEPT.c.call_key, _KEPT.c.answer)
    .where(
        _KEPT.c.question_key == bindparam("question"),
        _KEPT.c.state == "settled",
        _KEPT.c.source == BOUGHT,
        _KEPT.c.settled_at >= bindparam("since"),
        _KEPT.c.run_id != bindparam("of_run"),
        sa_select(_OTHER.c.id)
        .where(_OTHER.c.id == _KEPT.c.run_id, _OWN.c.id == bindparam("of_run"), _OTHER.c.workspace_id == _OWN.c.workspace_id)
        .exists(),
        ~sa_select(_USED.c.call_key)
        .where(
            _USED.c.run_id == bindparam("of_run"),
            _USED.c.from_run == _KEPT.c.run_id,
            _USED.c.from_key == _KEPT.c.call_key,
        )
        .exists(),
    )
    .order_by(
        case((_KEPT.c.call_key == bindparam("of_key"), 0), else_=1),
        _KEPT.c.settled_at,
        _KEPT.c.run_id,
        _KEPT.c.call_key,
    )
    .limit(1)
)


@dataclass(frozen=True)
class Flight:
    owner: str
    until: datetime


@dataclass(frozen=True)
class OpenCall:
    """A call that has not ended."""

    state: str
    reserved_usd: float


@dataclass(frozen=True)
class LedgerRow:
    """A call as recorded in the ledger, if it is there; `runs`: the asking attempt is the run's current one."""

    runs: bool
    state: str | None
    request_hash: str | None
    answer: bytes | None


def caller(session: Session, token_digest: str) -> Any:
    """What the gateway needs of the running run whose current attempt has this token, or None. The model's columns are null
    if the run has no model."""
    return session.connection().execute(_CALLER, {"digest": token_digest}).first()


def has_settled(connection: Connection, run_id: str, call_key: str) -> bool:
    row = _UNDER_WAY.first(connection, {"of_run": run_id, "of_key": call_key})
    return row is not None and row[0] == SETTLED


def look(connection: Connection, run_id: str, call_key: str, attempt: int | None) -> LedgerRow:
    row = _LOOK.first(connection, {"of_run": run_id, "of_key": call_key})
    if row is None:
        return LedgerRow(False, None, None, None)
    status, number, *call = row
    return LedgerRow(attempt is None or (status == RUNNING and number == attempt), *call)


def count_replay(connection: Connection, run_id: str, call_key: str) -> None:
    _COUNT_REPLAY.run(connection, {"of_run": run_id, "of_key": call_key})


def lock_run(connection: Connection, run_id: str) -> None:
    """Serialise openings of one run until the transaction ends; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:run, 0))"), {"run": run_id})


def under_way(connection: Connection, run_id: str, call_key: str) -> OpenCall | None:
    row = _UNDER_WAY.first(connection, {"of_run": run_id, "of_key": call_key})
    return None if row is None else OpenCall(row[0], float(row[1]))


def add(connection: Connection, **values: Any) -> None:
    """Insert a call; `values` by column name."""
    _ADD.run(connection, values)


def change(connection: Connection, run_id: str, call_key: str, **values: Any) -> None:
    """Set columns of a call. Raises `LookupError` if it does not exist."""
    _one(connection, _CHANGE, run_id, call_key, values)


def mark_sent(connection: Connection, run_id: str, call_key: str) -> None:
    _one(connection, _MARK_SENT, run_id, call_key, {"state": SENT})


def _one(connection: Connection, statement: Prepared, run_id: str, call_key: str, values: dict[str, Any]) -> None:
    if statement.run(connection, {"of_run": run_id, "of_key": call_key, **values}) != 1:
        raise LookupError(f"no call {call_key} of run {run_id} is in the ledger")


def settle(connection: Connection, run_id: str, call_key: str, **values: Any) -> bool:
    """Store the end of a call; False if it is already stored."""
    return _SETTLE.run(connection, {"of_run": run_id, "of_key": call_key, **values}) == 1


def flight(connection: Connection, run_id: str, call_key: str) -> Flight | None:
    row = _FLIGHT.first(connection, {"of_run": run_id, "of_key": call_key})
    return None if row is None else Flight(row[0], row[1])


def add_flight(connection: Connection, run_id: str, call_key: str, owner: str, until: datetime) -> None:
    _ADD_FLIGHT.run(connection, {"run_id": run_id, "call_key": call_key, "owner": owner, "until": until})


def remove_flight(connection: Connection, run_id: str, call_key: str) -> None:
    _REMOVE_FLIGHT.run(connection, {"of_run": run_id, "of_key": call_key})


def extend_flights(connection: Connection, owner: str, until: datetime) -> None:
    connection.execute(update(_FLIGHTS).where(_FLIGHTS.c.owner == owner).values(until=until))


def flights_of(connection: Connection, owner: str) -> list[tuple[str, str]]:
    query = sa_select(_FLIGHTS.c.run_id, _FLIGHTS.c.call_key).where(_FLIGHTS.c.owner == owner)
    return [(run_id, call_key) for run_id, call_key in connection.execute(query)]


def flights_overdue(connection: Connection, now: datetime) -> list[tuple[str, str]]:
    """Flights that their owner has not extended in time."""
    query = sa_select(_FLIGHTS.c.run_id, _FLIGHTS.c.call_key).where(_FLIGHTS.c.until < now)
    return [(run_id, call_key) for run_id, call_key in connection.execute(query.with_for_update(skip_locked=True))]


def reusable(connection: Connection, run_id: str, call_key: str, question_key: str, since: datetime) -> Any:
    """An answer to the same question that another run of the workspace bought since then and this run has not used yet,
    or None: preferably to the same sample of the same problem, else the oldest."""
    values = {"of_run": run_id, "of_key": call_key, "question": question_key, "since": since}
    return connection.execute(_REUSABLE, values).first()
