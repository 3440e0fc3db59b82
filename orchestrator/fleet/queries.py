"""Statements on agents and their attempts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session, col, select

from orchestrator.fleet.tables import Agent
from orchestrator.runs.queries import WITHOUT_TASK
from orchestrator.runs.tables import Attempt, ContainerRun


def lock(session: Session, agent_id: str) -> Agent | None:
    return session.exec(select(Agent).where(Agent.id == agent_id).with_for_update()).first()


def seen_since(session: Session, moment: datetime) -> Sequence[Agent]:
    return session.exec(select(Agent).where(col(Agent.seen_at) > moment).order_by(col(Agent.id))).all()


def every(session: Session) -> Sequence[Agent]:
    return session.exec(select(Agent).order_by(col(Agent.name), col(Agent.id))).all()


def living_attempts(session: Session, agent_id: str) -> Sequence[tuple[ContainerRun, Attempt]]:
    """The agent's attempts that have not ended, each with its run."""
    query = (
        select(ContainerRun, Attempt)
        .join(Attempt, col(Attempt.run_id) == col(ContainerRun.id))
        .where(Attempt.agent_id == agent_id, col(Attempt.ended_at).is_(None))
        .order_by(col(Attempt.dispatched_at))
        .options(WITHOUT_TASK)
    )
    return session.exec(query).all()


def attempt_by_name(session: Session, agent_id: str, container_name: str) -> Attempt | None:
    query = select(Attempt).where(Attempt.agent_id == agent_id, Attempt.container_name == container_name)
    return session.exec(query.with_for_update()).first()
