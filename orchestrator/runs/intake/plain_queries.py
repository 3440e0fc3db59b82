"""Statements of the plain way to store events, on a plain connection: every batch of every runner runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, bindparam, insert, text, update
from sqlalchemy import select as sa_select
from sqlalchemy.dialects import postgresql, sqlite

from orchestrator.db.prepared import Prepared
from orchestrator.runs.live.queries import EVENT_LOCK
from orchestrator.runs.queueing.drafts import Task
from orchestrator.runs.tables import Attempt, AttemptUsage, ContainerRun, Event, ItemRow

_RUNS: Any = ContainerRun.__table__  # type: ignore[attr-defined]
_ATTEMPTS: Any = Attempt.__table__  # type: ignore[attr-defined]
_USAGE: Any = AttemptUsage.__table__  # type: ignore[attr-defined]
_ITEMS: Any = ItemRow.__table__  # type: ignore[attr-defined]
_EVENTS: Any = Event.__table__  # type: ignore[attr-defined]

_STATE = Prepared(
    sa_select(
        _RUNS.c.id,
        _RUNS.c.workspace_id,
        _RUNS.c.kind,
        _RUNS.c.status,
        _RUNS.c.desired,
        _RUNS.c.attempt,
        _RUNS.c.waiting_for,
        _RUNS.c.items_total,
        _RUNS.c.items_done,
        _RUNS.c.items_passed,
        _RUNS.c.input_tokens,
        _RUNS.c.output_tokens,
        _ATTEMPTS.c.number,
        _ATTEMPTS.c.token_hash,
        _ATTEMPTS.c.last_seq,
        _ATTEMPTS.c.vcpu_s,
        _ATTEMPTS.c.gib_s,
        _ATTEMPTS.c.throttled_s,
    )
    .join_from(_RUNS, _ATTEMPTS, and_(_ATTEMPTS.c.run_id == _RUNS.c.id, _ATTEMPTS.c.number == bindparam("of_attempt")))
    .where(_RUNS.c.id == bindparam("of_run"))
    .with_for_update()
)
_PLANNED = Prepared(sa_select(_RUNS.c.task, _RUNS.c.samples_per_problem).where(_RUNS.c.id == bindparam("of_run")))
_PROGRESS = Prepared(update(_RUNS).where(_RUNS.c.id == bindparam("of_run")))
_REPORTED = Prepared(
    update(_ATTEMPTS).where(_ATTEMPTS.c.run_id == bindparam("of_run"), _ATTEMPTS.c.number == bindparam("of_attempt"))
)
_SAMPLES = Prepared(
    sa_select(_USAGE.c.samples).where(_USAGE.c.run_id == bindparam("of_run"), _USAGE.c.number == bindparam("of_attempt"))
)
_EVENT = Prepared(insert(_EVENTS))


def _new_item(dialect: Any) -> Any:
    return dialect.insert(_ITEMS).on_conflict_do_nothing()


def _put_samples(dialect: Any) -> Any:
    statement = dialect.insert(_USAGE)
    return statement.on_conflict_do_update(index_elements=["run_id", "number"], set_={"samples": statement.excluded.samples})


_NEW_ITEM = Prepared({"sqlite": _new_item(sqlite), "postgresql": _new_item(postgresql)})
_PUT_SAMPLES = Prepared({"sqlite": _put_samples(sqlite), "postgresql": _put_samples(postgresql)})


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """The columns of a run that its plan is made of."""

    task: Task
    samples_per_problem: int


@dataclass(slots=True)
class State:
    """What the intake needs of a run and of the attempt that reports. The order is that of the statement's columns."""

    id: str
    workspace_id: int
    kind: str
    status: str
    desired: str
    attempt: int
    waiting_for: str | None
    items_total: int
    items_done: int
    items_passed: int
    input_tokens: int
    output_tokens: int
    number: int
    token_hash: str | None
    last_seq: int
    vcpu_s: float
    gib_s: float
    throttled_s: float


def lock(connection: Connection, run_id: str, attempt: int) -> State | None:
    """The run and this attempt of it, locked until the transaction ends."""
    row = _STATE.first(connection, {"of_run": run_id, "of_attempt": attempt})
    return None if row is None else State(*row)


def planned(connection: Connection, run_id: str) -> PlannedRun | None:
    """What a run's plan is made of."""
    row = _PLANNED.first(connection, {"of_run": run_id})
    return None if row is None else PlannedRun(*row)


def samples(connection: Connection, run_id: str, attempt: int) -> list[list[float | None]]:
    row = _SAMPLES.first(connection, {"of_run": run_id, "of_attempt": attempt})
    return [] if row is None else row[0]


def put_samples(connection: Connection, run_id: str, attempt: int, kept: Sequence[Any]) -> None:
    _PUT_SAMPLES.run(connection, {"run_id": run_id, "number": attempt, "samples": kept})


def insert_new_items(connection: Connection, rows: Sequence[dict[str, Any]]) -> list[bool]:
    """Store results, each unless its item has one already; returns for each whether it was stored."""
    return [count == 1 for count in _NEW_ITEM.run_each(connection, rows)]


def append_events(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Append to the event log, in this order. On PostgreSQL it is locked until the commit, see `live.queries.append`."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": EVENT_LOCK})
    _EVENT.run_many(connection, rows)


def put_states(connection: Connection, states: Sequence[State], lease_until: datetime, now: datetime) -> None:
    _PROGRESS.run_many(
        connection,
        [
            {
                "of_run": state.id,
                "waiting_for": state.waiting_for,
                "items_total": state.items_total,
                "items_done": state.items_done,
                "items_passed": state.items_passed,
                "input_tokens": state.input_tokens,
                "output_tokens": state.output_tokens,
                "lease_until": lease_until,
            }
            for state in states
        ],
    )
    _REPORTED.run_many(
        connection,
        [
            {
                "of_run": state.id,
                "of_attempt": state.number,
                "last_seq": state.last_seq,
                "last_event_at": now,
                "vcpu_s": state.vcpu_s,
                "gib_s": state.gib_s,
                "throttled_s": state.throttled_s,
            }
            for state in states
        ],
    )
