"""Queries on the machine usage of runs, and on how their starts went."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, String, cast, func, literal, select, true
from sqlmodel import Session, col

from orchestrator.db.workspaces import acting_in
from orchestrator.models.tables import LlmModel
from orchestrator.runs.tables import Attempt, ContainerRun
from orchestrator.schedules.tables import ScheduleFire

_RUNS: Any = ContainerRun.__table__  # type: ignore[attr-defined]

STORED_ANSWERS = "stored-answers"
"""The model name for runs that call none, except commands."""
REFUSALS = ("engine_error", "image_missing", "name_taken", "start_timeout")


def _of_workspace(session: Session) -> ColumnElement[bool]:
    """Runs of the session's workspace, in a form that no index fits: so the attempts of the time are found first, then their
    runs by key. Without statistics, SQLite would begin with all runs of the workspace."""
    actor = acting_in(session)
    return true() if actor is None else _RUNS.c.workspace_id + 0 == actor.workspace_id


def used(session: Session, by: str, since: datetime, limit: int) -> Sequence[Any]:
    """(key, runs, vcpu_s, gib_s, throttled_s) since then, largest first, or newest day first. `by` is run, model, batch,
    day, or schedule, which is keyed by its model."""
    key: Any
    sums = (
        func.count(func.distinct(col(Attempt.run_id))).label("runs"),
        func.sum(col(Attempt.vcpu_s)).label("vcpu_s"),
        func.sum(col(Attempt.gib_s)).label("gib_s"),
        func.sum(col(Attempt.throttled_s)).label("throttled_s"),
    )
    if by == "run":
        key = col(Attempt.run_id)
    elif by in ("model", "schedule"):
        key = func.coalesce(col(LlmModel.slug), STORED_ANSWERS)
    elif by == "batch":
        key = col(ContainerRun.batch_id)
    else:
        key = _day(session)
    query = select(key.label("key"), *sums).select_from(Attempt)
    query = query.join(ContainerRun, col(ContainerRun.id) == col(Attempt.run_id))
    if by in ("model", "schedule"):
        query = query.join(LlmModel, col(LlmModel.id) == col(ContainerRun.model_id), isouter=True)
        query = query.where(col(ContainerRun.kind) != "command")  # commands call no model
    if by == "schedule":
        query = query.join(ScheduleFire, col(ScheduleFire.run_id) == col(ContainerRun.id))
    query = query.where(_of_workspace(session), col(Attempt.dispatched_at) >= since, key.is_not(None)).group_by(key)
    order = key.desc() if by == "day" else func.sum(col(Attempt.vcpu_s)).desc()
    return session.connection().execute(query.order_by(order).limit(limit)).all()


def starts(session: Session, since: datetime) -> Sequence[Any]:
    """(created_at, number, dispatched_at, claimed_at, last_event_at, reason, throttled_s) of attempts begun since then."""
    columns: tuple[Any, ...] = (
        ContainerRun.created_at,
        Attempt.number,
        Attempt.dispatched_at,
        Attempt.claimed_at,
        Attempt.last_event_at,
        Attempt.reason,
        Attempt.throttled_s,
    )
    query = select(*columns).join(ContainerRun, col(ContainerRun.id) == col(Attempt.run_id))
    return session.connection().execute(query.where(col(Attempt.dispatched_at) >= since).limit(5000)).all()


def spans(session: Session, since: datetime, limit: int = 20_000) -> Sequence[Any]:
    """(instance type, dispatched_at, ended_at) of attempts that began since then, newest first."""
    query = select(col(Attempt.instance_type), col(Attempt.dispatched_at), col(Attempt.ended_at))
    query = query.join(ContainerRun, col(ContainerRun.id) == col(Attempt.run_id)).where(_of_workspace(session))
    query = query.where(col(Attempt.dispatched_at) >= since).order_by(col(Attempt.dispatched_at).desc())
    return session.connection().execute(query.limit(limit)).all()


def _day(session: Session) -> ColumnElement[Any]:
    moment: Any = col(Attempt.dispatched_at)
    if session.get_bind().dialect.name == "postgresql":
        moment = func.timezone(literal("UTC"), moment)
    return cast(func.date(moment), String)
