"""Queries on jobs: runs of every kind, with the additional row of eval jobs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, func
from sqlalchemy.orm import defer
from sqlmodel import Session, col, select

from orchestrator.evals.tables import EvalJob
from orchestrator.runs.queries import OURS, WITHOUT_TASK
from orchestrator.runs.tables import Attempt, ContainerRun

WITHOUT_LOAD = (defer(EvalJob.result), defer(EvalJob.rounds))  # type: ignore[arg-type]
OPEN = ("pending", "starting", "running")
Row = tuple[ContainerRun, EvalJob | None]


def page(
    session: Session,
    *,
    limit: int,
    after: str | None = None,
    kind: str | None = None,
    statuses: Collection[str] | None = None,
    dead_after: int | None = None,
    eval_set_id: str | None = None,
    eval_id: str | None = None,
) -> Sequence[Row]:
    """Newest first."""
    query = select(ContainerRun, EvalJob).join(EvalJob, col(EvalJob.run_id) == col(ContainerRun.id), isouter=True)
    if after is not None:
        query = query.where(col(ContainerRun.id) < after)
    if kind is not None:
        query = query.where(ContainerRun.kind == kind)
    if statuses is not None:
        query = query.where(col(ContainerRun.status).in_(statuses))
    if dead_after is not None:
        query = query.where(_dead_letter(dead_after))
    if eval_set_id is not None:
        query = query.where(EvalJob.eval_set_id == eval_set_id)
    if eval_id is not None:
        query = query.where(EvalJob.eval_id == eval_id)
    query = query.options(WITHOUT_TASK, *WITHOUT_LOAD).order_by(col(ContainerRun.id).desc()).limit(limit)
    return [(run, job) for run, job in session.exec(query).all()]


def _dead_letter(dead_after: int) -> ColumnElement[bool]:
    """Given up after this many attempts, not dismissed, and without a completed retry."""
    return and_(
        col(ContainerRun.status) == "failed",
        col(ContainerRun.attempts_without_progress) >= dead_after,
        col(ContainerRun.dismissed_at).is_(None),
        col(ContainerRun.succeeded_by).is_(None),
    )


def get(session: Session, job_id: str) -> Row | None:
    query = select(ContainerRun, EvalJob).join(EvalJob, col(EvalJob.run_id) == col(ContainerRun.id), isouter=True)
    row = session.exec(query.where(ContainerRun.id == job_id).options(WITHOUT_TASK, *WITHOUT_LOAD)).first()
    return None if row is None else (row[0], row[1])


def eval_job(session: Session, run_id: str) -> EvalJob | None:
    """The eval job, including its result."""
    return session.get(EvalJob, run_id)


def rounds(session: Session, run_id: str) -> list[dict[str, Any]]:
    """The model's answers so far, each with what was wrong with it."""
    return list(session.exec(select(EvalJob.rounds).where(EvalJob.run_id == run_id)).first() or [])


def open_eval_jobs(session: Session) -> Sequence[str]:
    query = select(EvalJob.run_id).join(ContainerRun, col(ContainerRun.id) == col(EvalJob.run_id))
    return session.exec(query.where(col(ContainerRun.status).in_(OPEN)).order_by(col(EvalJob.run_id))).all()


def light(session: Session, run_id: str) -> EvalJob | None:
    """The eval job without its result and rounds, which may be large."""
    return session.exec(select(EvalJob).where(EvalJob.run_id == run_id).options(*WITHOUT_LOAD)).first()


def holding_by_kind(session: Session) -> dict[str, int]:
    """Number of containers that use capacity, by the kind of their run."""
    query = (
        select(ContainerRun.kind, func.count())
        .join(Attempt, col(Attempt.run_id) == col(ContainerRun.id))
        .where(col(Attempt.ended_at).is_(None), OURS)
        .group_by(ContainerRun.kind)
    )
    return {kind: int(count) for kind, count in session.exec(query).all()}


@dataclass(frozen=True)
class Figures:
    """Jobs in numbers, for metrics."""

    runs: dict[tuple[str, str], int]
    """By kind and status."""
    dead_letters: dict[str, int]
    oldest_pending: dict[str, datetime]


def figures(session: Session, dead_after: int) -> Figures:
    """All runs are counted from an index; rows are read of those that failed or wait only."""
    kind = col(ContainerRun.kind)
    states: Any = select(kind, ContainerRun.status, func.count()).group_by(kind, col(ContainerRun.status))
    dead: Any = select(kind, func.count()).where(_dead_letter(dead_after)).group_by(kind)
    oldest: Any = select(kind, func.min(ContainerRun.created_at)).where(ContainerRun.status == "pending").group_by(kind)
    return Figures(
        runs={(kind, status): int(count) for kind, status, count in session.exec(states).all()},
        dead_letters={kind: int(count) for kind, count in session.exec(dead).all()},
        oldest_pending=dict(session.exec(oldest).all()),
    )
