"""Queries on warm runners."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import func, update
from sqlmodel import Session, col, select

from orchestrator.db.insert_once import insert_once
from orchestrator.runs.tables import Attempt, ContainerRun
from orchestrator.runs.warm_pool.tables import IdleUsage, WarmRunner


def by_token(session: Session, token_hash: str) -> WarmRunner | None:
    return session.exec(select(WarmRunner).where(WarmRunner.token_hash == token_hash).with_for_update()).first()


def lock(session: Session, warm_id: str) -> WarmRunner | None:
    return session.exec(select(WarmRunner).where(WarmRunner.id == warm_id).with_for_update()).first()


def waiting(session: Session) -> Sequence[WarmRunner]:
    """Runners that no run has taken, oldest first; each occupies capacity."""
    return session.exec(select(WarmRunner).where(col(WarmRunner.run_id).is_(None)).order_by(col(WarmRunner.id))).all()


def taken_from(session: Session) -> Sequence[WarmRunner]:
    """Runners whose attempt has ended."""
    ours = (Attempt.run_id == WarmRunner.run_id, Attempt.number == WarmRunner.attempt)
    query = select(WarmRunner).join(Attempt, onclause=(ours[0]) & (ours[1]))  # type: ignore[arg-type]
    return session.exec(query.where(col(Attempt.ended_at).is_not(None))).all()


def add_idle(session: Session, now: datetime, instance_type: str, *, ready_s: float, vcpu_s: float, gib_s: float) -> None:
    """Add to the idle usage of an instance type on this day."""
    day = now.date().isoformat()
    insert_once(session, IdleUsage(day=day, instance_type=instance_type))
    ours = (col(IdleUsage.day) == day) & (col(IdleUsage.instance_type) == instance_type)
    more = {
        "ready_s": col(IdleUsage.ready_s) + ready_s,
        "vcpu_s": col(IdleUsage.vcpu_s) + vcpu_s,
        "gib_s": col(IdleUsage.gib_s) + gib_s,
    }
    session.connection().execute(update(IdleUsage).where(ours).values(**more))


def idle_since(session: Session, day: str) -> Sequence[IdleUsage]:
    """Idle usage by day and instance type, newest first."""
    query = select(IdleUsage).where(col(IdleUsage.day) >= day)
    return session.exec(query.order_by(col(IdleUsage.day).desc(), col(IdleUsage.instance_type))).all()


def started_since(session: Session, moment: datetime, *, without: Collection[str]) -> dict[str, int]:
    """Number of attempts by instance type that began since then on our own engine, excluding runs of some kinds."""
    query = select(Attempt.instance_type, func.count()).join(ContainerRun, col(ContainerRun.id) == col(Attempt.run_id))
    query = query.where(Attempt.dispatched_at >= moment, col(Attempt.agent_id).is_(None))
    query = query.where(col(ContainerRun.kind).not_in(without))
    return {name: int(count) for name, count in session.exec(query.group_by(Attempt.instance_type)).all()}
