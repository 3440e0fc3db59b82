"""Queries on tasks: command runs that wait for a task runner of their provider, and the task runners."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import and_, delete, exists, func, not_, or_
from sqlmodel import Session, col, select

from orchestrator.fleet.tables import Agent
from orchestrator.runs.queries import WITHOUT_TASK
from orchestrator.runs.tables import Attempt, ContainerRun

TASK_ENGINE = "task"
"""The engine of an agent that is a task runner; the orchestrator starts nothing there."""
OPEN = ("pending", "starting", "running")


def due(
    session: Session,
    now: datetime,
    *,
    provider: str,
    instance_types: Collection[str],
    full_workspaces: Collection[int],
    full_users: Collection[tuple[int, int]],
    limit: int = 20,
) -> Sequence[str]:
    """Ids of command runs of this provider that may start now, by priority, then oldest first."""
    user_id = func.coalesce(ContainerRun.user_id, 0)
    of_full_users = [and_(col(ContainerRun.workspace_id) == workspace, user_id == user) for workspace, user in full_users]
    query = select(ContainerRun.id).where(
        ContainerRun.status == "pending",
        ContainerRun.kind == "command",
        ContainerRun.provider == provider,
        col(ContainerRun.instance_type).in_(instance_types),
        or_(col(ContainerRun.not_before).is_(None), col(ContainerRun.not_before) <= now),
        col(ContainerRun.workspace_id).not_in(full_workspaces),
        *(not_(condition) for condition in of_full_users),
    )
    return session.exec(query.order_by(col(ContainerRun.priority).desc(), col(ContainerRun.id)).limit(limit)).all()


def open_count(session: Session, provider: str, instance_types: Collection[str]) -> int:
    """Number of this provider's tasks that have not ended: waiting, delayed, or held by a runner."""
    query = select(func.count()).where(
        col(ContainerRun.status).in_(OPEN),
        ContainerRun.kind == "command",
        ContainerRun.provider == provider,
        col(ContainerRun.instance_type).in_(instance_types),
    )
    return int(session.exec(query).one())


def lock_task(session: Session, run_id: str, attempt: int) -> tuple[ContainerRun, Attempt] | None:
    """A run with one of its attempts, locked in the usual order."""
    run = session.exec(select(ContainerRun).where(ContainerRun.id == run_id).options(WITHOUT_TASK).with_for_update()).first()
    query = select(Attempt).where(Attempt.run_id == run_id, Attempt.number == attempt)
    row = session.exec(query.with_for_update()).first()
    return None if run is None or row is None else (run, row)


def forget_silent(session: Session, before: datetime) -> None:
    """Delete task runners that were silent for long and hold no attempt; they come and go under many names."""
    holding = exists().where(col(Attempt.agent_id) == col(Agent.id), col(Attempt.ended_at).is_(None))
    old = delete(Agent).where(col(Agent.engine) == TASK_ENGINE, col(Agent.seen_at) < before, ~holding)
    session.connection().execute(old)
