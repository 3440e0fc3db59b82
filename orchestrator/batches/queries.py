"""Queries on batches and their members. The newest run of a slot is its member; earlier ones were retried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import func
from sqlalchemy import select as sa_select
from sqlalchemy.orm import aliased, defer
from sqlmodel import Session, col, select

from orchestrator.batches.tables import Batch
from orchestrator.runs.queries import WITHOUT_TASK
from orchestrator.runs.tables import Attempt, ContainerRun, ItemRow


def find(session: Session, key: str) -> Batch | None:
    """The batch with this id or external id."""
    batch = session.get(Batch, key)
    if batch is None and key.isascii() and key.isdecimal() and len(key) < 19:
        batch = by_external_id(session, int(key))
    return batch


def by_external_id(session: Session, external_id: int) -> Batch | None:
    return session.exec(select(Batch).where(Batch.external_id == external_id)).first()


def lock(session: Session, batch_id: str) -> Batch | None:
    return session.exec(select(Batch).where(Batch.id == batch_id).with_for_update()).first()


def page(session: Session, *, limit: int, after: str | None) -> Sequence[Batch]:
    """Newest first; ids are ordered by time."""
    query = select(Batch)
    if after is not None:
        query = query.where(col(Batch.id) < after)
    return session.exec(query.order_by(col(Batch.id).desc()).limit(limit)).all()


def members(session: Session, batch_ids: Iterable[str]) -> Sequence[ContainerRun]:
    """All runs of the batches, by slot, oldest first."""
    wanted = list(batch_ids)
    if not wanted:  # the database would look at every run to find none
        return []
    query = select(ContainerRun).where(col(ContainerRun.batch_id).in_(wanted)).options(WITHOUT_TASK)
    return session.exec(query.order_by(col(ContainerRun.batch_slot), col(ContainerRun.id))).all()


def lock_members(session: Session, batch_id: str) -> Sequence[ContainerRun]:
    query = select(ContainerRun).where(ContainerRun.batch_id == batch_id).options(WITHOUT_TASK)
    order = (col(ContainerRun.batch_slot), col(ContainerRun.id))
    return session.exec(query.order_by(*order).with_for_update()).all()


def attempts_now(session: Session, batch_id: str) -> dict[str, Attempt]:
    """The newest attempt of each run of a batch, without its log."""
    query = (
        select(Attempt)
        .join(
            ContainerRun,
            (col(Attempt.run_id) == col(ContainerRun.id)) & (col(Attempt.number) == col(ContainerRun.attempt)),
        )
        .where(ContainerRun.batch_id == batch_id)
        .options(defer(Attempt.log_tail))  # type: ignore[arg-type]
    )
    return {row.run_id: row for row in session.exec(query).all()}


def first_open(session: Session, run_id: str) -> int:
    """The lowest position of a run without a result, which its runner has been working on the longest."""
    following = aliased(ItemRow)
    if session.exec(select(ItemRow.position).where(ItemRow.run_id == run_id, ItemRow.position == 0)).first() is None:
        return 0
    next_one: Any = (col(following.run_id) == col(ItemRow.run_id)) & (col(following.position) == col(ItemRow.position) + 1)
    gap = (
        sa_select(func.min(col(ItemRow.position)) + 1)
        .select_from(ItemRow)
        .outerjoin(following, next_one)
        .where(col(ItemRow.run_id) == run_id, col(following.run_id).is_(None))
    )
    return int(session.connection().execute(gap).scalar_one())
