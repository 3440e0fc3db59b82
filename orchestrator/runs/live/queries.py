"""Queries on the event log. Numbers grow in commit order: a reader that has seen number n never misses a smaller one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, text
from sqlmodel import Session, col, select

from orchestrator.db.workspaces import acting_in, workspace_of
from orchestrator.runs.tables import ContainerRun, Event

EVENT_LOCK = 7_346_020
_COLUMNS: Any = (
    Event.id,
    Event.workspace_id,
    Event.run_id,
    Event.attempt,
    Event.seq,
    Event.type,
    Event.data,
    Event.at,
)


def append(
    session: Session,
    type_: str,
    at: datetime,
    *,
    run_id: str | None = None,
    attempt: int | None = None,
    seq: int | None = None,
    data: dict[str, Any] | None = None,
) -> None:
    if session.get_bind().dialect.name == "postgresql":
        # Held until the commit. Without it, a later number could become visible before an earlier one.
        session.connection().execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": EVENT_LOCK})
    run = session.get(ContainerRun, run_id) if run_id is not None and acting_in(session) is None else None
    workspace_id = run.workspace_id if run else workspace_of(session)
    session.add(
        Event(workspace_id=workspace_id, run_id=run_id, attempt=attempt, seq=seq, type=type_, data=data or {}, at=at)
    )


def after(session: Session, number: int, *, run_id: str | None = None, limit: int = 500) -> Sequence[Any]:
    """Events with a later number, as plain rows with the columns of `Event`: every event of every run is read here once,
    and objects of the session would cost several times as much."""
    query = select(*_COLUMNS).where(col(Event.id) > number)
    if run_id is not None:
        query = query.where(Event.run_id == run_id)
    rows: Sequence[Any] = session.exec(query.order_by(col(Event.id)).limit(limit)).all()
    return rows


def last_number(session: Session) -> int:
    return session.exec(select(func.max(Event.id))).one() or 0


def transitions(session: Session, run_id: str) -> Sequence[Event]:
    query = select(Event).where(Event.run_id == run_id, Event.type == "transition").order_by(col(Event.id))
    return session.exec(query).all()


def log_lines(session: Session, run_id: str, *, after_number: int, limit: int) -> Sequence[Event]:
    query = select(Event).where(Event.run_id == run_id, Event.type == "log", col(Event.id) > after_number)
    return session.exec(query.order_by(col(Event.id)).limit(limit)).all()


def of_run(session: Session, run_id: str, types: Sequence[str], *, after_number: int, limit: int = 500) -> Sequence[Event]:
    query = select(Event).where(Event.run_id == run_id, col(Event.type).in_(types), col(Event.id) > after_number)
    return session.exec(query.order_by(col(Event.id)).limit(limit)).all()


def forget_before(session: Session, before: datetime) -> int:
    """Delete old events, except transitions, which prove every state, and the newest event: SQLite would reuse its number,
    and a client that has seen that number would miss the next event."""
    older = col(Event.id) < last_number(session)
    statement = delete(Event).where(col(Event.at) < before, col(Event.type) != "transition", older)
    return int(session.connection().execute(statement).rowcount)
