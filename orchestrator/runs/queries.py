"""Queries on runs and their attempts."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, cast, exists, func, not_, or_, update
from sqlalchemy.orm import defer
from sqlmodel import Session, col, select

from orchestrator.runs.queueing.drafts import Task
from orchestrator.runs.tables import Artefact, Attempt, AttemptUsage, ContainerRun

LIVE = ("starting", "running")
RETRY = "retry"
"""The trigger of a retry. A regrade also sets `retry_of`, but has another trigger."""
MEASURING = col(ContainerRun.kind).in_(("benchmark", "grade", "command", "harness"))
"""Runs that measure something; eval jobs do not."""
OURS = col(ContainerRun.inherited).is_(False)
"""Excludes runs that belong to the installation that this one is a copy of."""
NOT_INHERITED = ~exists().where(col(ContainerRun.id) == col(Attempt.run_id), col(ContainerRun.inherited))
"""Looks at the runs of the attempts in question only, by their key."""
WITHOUT_TASK = defer(ContainerRun.task)  # type: ignore[arg-type]
"""A task may name thousands of problems, so it is loaded only where it is used, while the session is open."""


def get(session: Session, run_id: str) -> ContainerRun | None:
    return session.get(ContainerRun, run_id)


def task_of(session: Session, run_id: str) -> Task | None:
    """The task of a run, without the rest of the row."""
    return session.exec(select(col(ContainerRun.task)).where(ContainerRun.id == run_id)).first()


def lock(session: Session, run_id: str) -> ContainerRun | None:
    """The run, locked for this transaction (on SQLite the single writer is the lock)."""
    query = select(ContainerRun).where(ContainerRun.id == run_id).options(WITHOUT_TASK)
    return session.exec(query.with_for_update()).first()


def mark_succeeded(session: Session, run: ContainerRun) -> None:
    """After a retry has completed, record it on every run that it retried, directly or through other retries."""
    earlier, retry = run.retry_of, run.trigger_type == RETRY
    while retry and earlier is not None:
        run_before = lock(session, earlier)
        if run_before is None:
            return
        run_before.succeeded_by = run.id
        session.add(run_before)
        earlier, retry = run_before.retry_of, run_before.trigger_type == RETRY


def page(
    session: Session,
    *,
    limit: int,
    after: str | None = None,
    status: str | None = None,
    model_id: int | None = None,
    batch_id: str | None = None,
    trigger_type: str | None = None,
    tag: str | None = None,
) -> Sequence[ContainerRun]:
    """Newest first; ids are ordered by time. Eval jobs have a list of their own."""
    query = select(ContainerRun).where(MEASURING).options(WITHOUT_TASK)
    if after is not None:
        query = query.where(col(ContainerRun.id) < after)
    if status is not None:
        query = query.where(ContainerRun.status == status)
    if model_id is not None:
        query = query.where(ContainerRun.model_id == model_id)
    if batch_id is not None:
        query = query.where(ContainerRun.batch_id == batch_id)
    if trigger_type is not None:
        query = query.where(ContainerRun.trigger_type == trigger_type)
    if tag is not None:
        query = query.where(tagged(tag))
    return session.exec(query.order_by(col(ContainerRun.id).desc()).limit(limit)).all()


def tagged(tag: str) -> ColumnElement[bool]:
    """Runs that have this tag, which is one of a JSON list."""
    return cast(col(ContainerRun.tags), Text).contains(json.dumps(tag), autoescape=True)


def _may_start(now: datetime) -> tuple[Any, ...]:
    waited = or_(col(ContainerRun.not_before).is_(None), col(ContainerRun.not_before) <= now)
    return (ContainerRun.status == "pending", OURS, waited)


def due(
    session: Session,
    now: datetime,
    limit: int,
    without: Sequence[str] = (),
    full_workspaces: Collection[int] = (),
    full_users: Collection[tuple[int, int]] = (),
) -> Sequence[ContainerRun]:
    """Pending runs that may start now, by priority, then oldest first; some kinds, workspaces and users are excluded."""
    user_id = func.coalesce(ContainerRun.user_id, 0)
    of_full_users = [and_(col(ContainerRun.workspace_id) == workspace, user_id == user) for workspace, user in full_users]
    query = (
        select(ContainerRun)
        .where(
            *_may_start(now),
            col(ContainerRun.kind).not_in(without),
            col(ContainerRun.workspace_id).not_in(full_workspaces),
            *(not_(condition) for condition in of_full_users),
        )
        .order_by(col(ContainerRun.priority).desc(), col(ContainerRun.id))
        .limit(limit)
        .options(WITHOUT_TASK)
    )
    return session.exec(query).all()


def anything_due(session: Session, now: datetime) -> bool:
    """Whether a run may start now, limits aside."""
    return session.exec(select(ContainerRun.id).where(*_may_start(now)).limit(1)).first() is not None


def pending(session: Session, limit: int = 200) -> Sequence[ContainerRun]:
    query = select(ContainerRun).where(ContainerRun.status == "pending").options(WITHOUT_TASK)
    return session.exec(query.order_by(col(ContainerRun.priority).desc(), col(ContainerRun.id)).limit(limit)).all()


def live(session: Session) -> Sequence[tuple[ContainerRun, Attempt]]:
    """Runs that have a container now, with their current attempt."""
    query = (
        select(ContainerRun, Attempt)
        .join(
            Attempt,
            (col(Attempt.run_id) == col(ContainerRun.id)) & (col(Attempt.number) == col(ContainerRun.attempt)),
        )
        .where(col(ContainerRun.status).in_(LIVE), OURS)
        .options(WITHOUT_TASK)
    )
    return [(run, attempt) for run, attempt in session.exec(query).all()]


def unfinished(session: Session) -> Sequence[ContainerRun]:
    """Runs that have not ended and have had at least one attempt, locked."""
    begun = col(ContainerRun.started_at).is_not(None) | col(ContainerRun.not_before).is_not(None)
    taken_up = col(ContainerRun.status).in_(LIVE) | ((col(ContainerRun.status) == "pending") & begun)
    return session.exec(select(ContainerRun).where(taken_up).with_for_update()).all()


def answers(session: Session) -> bool:
    """Whether the database can be read at all; asked often, so it looks at one row."""
    return session.exec(select(ContainerRun.id).limit(1)).first() is not None


def put_off_start(session: Session, run_id: str, attempt: int, start_deadline: datetime) -> None:
    """Extend the start deadline of an attempt that is starting."""
    starting = (col(ContainerRun.id) == run_id, col(ContainerRun.attempt) == attempt, col(ContainerRun.status) == "starting")
    session.connection().execute(update(ContainerRun).where(*starting).values(start_deadline=start_deadline))


def extend_leases(session: Session, lease_until: datetime, start_deadline: datetime) -> int:
    """Renew the lease of every live run, after this orchestrator was down or stalled."""
    leases = (
        update(ContainerRun)
        .where(col(ContainerRun.status) == "running", col(ContainerRun.lease_until) < lease_until, OURS)
        .values(lease_until=lease_until)
    )
    starts = (
        update(ContainerRun)
        .where(col(ContainerRun.status) == "starting", col(ContainerRun.start_deadline) < start_deadline, OURS)
        .values(start_deadline=start_deadline)
    )
    return int(session.connection().execute(leases).rowcount) + int(session.connection().execute(starts).rowcount)


def attempts(session: Session, run_id: str) -> Sequence[Attempt]:
    return session.exec(select(Attempt).where(Attempt.run_id == run_id).order_by(col(Attempt.number))).all()


def attempt(session: Session, run_id: str, number: int) -> Attempt | None:
    return session.get(Attempt, (run_id, number))


def lock_attempt(session: Session, run_id: str, number: int) -> Attempt | None:
    query = select(Attempt).where(Attempt.run_id == run_id, Attempt.number == number)
    return session.exec(query.with_for_update()).first()


def usage(session: Session, run_id: str) -> dict[int, list[list[float | None]]]:
    """Usage samples by attempt number."""
    rows = session.exec(select(AttemptUsage).where(AttemptUsage.run_id == run_id)).all()
    return {row.number: row.samples for row in rows}


def usage_row(session: Session, run_id: str, number: int) -> AttemptUsage:
    """The row with an attempt's usage samples; a new one is already added to the session."""
    row = session.get(AttemptUsage, (run_id, number))
    if row is None:
        row = AttemptUsage(run_id=run_id, number=number, samples=[])
        session.add(row)
    return row


def attempt_by_token(session: Session, token_hash: str) -> Attempt | None:
    return session.exec(select(Attempt).where(Attempt.token_hash == token_hash)).first()


def unremoved_attempts(session: Session) -> Sequence[Attempt]:
    """Attempts whose container is not confirmed removed yet."""
    return session.exec(select(Attempt).where(col(Attempt.removed_at).is_(None), NOT_INHERITED)).all()


def used_uid_bases(session: Session) -> set[int]:
    """Ranges of sandbox uids that a container may still be using."""
    return set(session.exec(select(Attempt.sandbox_uid_base).where(col(Attempt.removed_at).is_(None))).all())


def holding_attempts(session: Session) -> Sequence[Attempt]:
    """Attempts that use capacity: a container may run until the engine reports its end, whatever its run's state."""
    return session.exec(select(Attempt).where(col(Attempt.ended_at).is_(None), NOT_INHERITED)).all()


def artefact(session: Session, run_id: str, name: str) -> Artefact | None:
    return session.get(Artefact, (run_id, name))


def artefacts(session: Session, run_id: str) -> Sequence[Artefact]:
    return session.exec(select(Artefact).where(Artefact.run_id == run_id).order_by(col(Artefact.name))).all()


def visible(session: Session, ids: Collection[str]) -> set[str]:
    """The subset of these runs that this session may see."""
    return set(session.exec(select(ContainerRun.id).where(col(ContainerRun.id).in_(ids))).all())
