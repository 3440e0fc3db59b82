"""Statements on archives. A row is created when its run ends, and waits until the run's containers are removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import and_, exists, func, or_
from sqlmodel import Session, col, select

from orchestrator.archives.tables import ArchiveRow, BatchArchiveRow
from orchestrator.batches.tables import Batch
from orchestrator.db.insert_once import insert_once
from orchestrator.runs.tables import Attempt, ContainerRun

WAITING = "waiting"
BUILT = "built"
STORED = "stored"
EXPIRED = "expired"
RUN, BATCH = "run", "batch"


def request_archive(session: Session, run_id: str, now: datetime) -> None:
    """Requests an archive for a run that has ended."""
    insert_once(session, ArchiveRow(run_id=run_id, not_before=now))


def due(session: Session, now: datetime, limit: int) -> Sequence[ArchiveRow]:
    """Archives to make or upload now, longest waiting first. A container's log is complete once the container is removed."""
    container_remains = exists().where(col(Attempt.run_id) == col(ArchiveRow.run_id), col(Attempt.removed_at).is_(None))
    query = select(ArchiveRow).where(
        col(ArchiveRow.state).in_((WAITING, BUILT)), col(ArchiveRow.not_before) <= now, ~container_remains
    )
    return session.exec(query.order_by(col(ArchiveRow.not_before), col(ArchiveRow.run_id)).limit(limit)).all()


def have_containers(session: Session, run_ids: Iterable[str]) -> bool:
    """Whether any of these runs still has a container."""
    query = select(Attempt.run_id).where(col(Attempt.run_id).in_(list(run_ids)), col(Attempt.removed_at).is_(None))
    return session.exec(query.limit(1)).first() is not None


def get(session: Session, run_id: str) -> ArchiveRow | None:
    return session.get(ArchiveRow, run_id)


def lock(session: Session, run_id: str) -> ArchiveRow | None:
    return session.exec(select(ArchiveRow).where(ArchiveRow.run_id == run_id).with_for_update()).first()


def of_runs(session: Session, run_ids: Iterable[str]) -> dict[str, ArchiveRow]:
    rows = session.exec(select(ArchiveRow).where(col(ArchiveRow.run_id).in_(list(run_ids)))).all()
    return {row.run_id: row for row in rows}


def stored(session: Session) -> list[tuple[tuple[str, str], int, datetime]]:
    """((kind, id of the run or batch), size, stored at) of all stored archives, oldest first."""
    runs = select(ArchiveRow.run_id, ArchiveRow.size_bytes, ArchiveRow.stored_at).where(ArchiveRow.state == STORED)
    batches = select(BatchArchiveRow.batch_id, BatchArchiveRow.size_bytes, BatchArchiveRow.stored_at).where(
        BatchArchiveRow.state == STORED
    )
    archives = [
        ((kind, archive_id), size or 0, at)
        for kind, query in ((RUN, runs), (BATCH, batches))
        for archive_id, size, at in session.exec(query).all()
        if at is not None
    ]
    return sorted(archives, key=lambda archive: (archive[2], archive[0]))


# -- batch archives: only with an object store


def due_batch(session: Session, now: datetime, oldest: datetime | None) -> str | None:
    """An ended batch whose members' archives are not pending and whose own archive is not in the object store."""
    in_batch = col(ContainerRun.batch_id) == col(Batch.id)
    going = exists().where(in_batch, col(ContainerRun.status).not_in(("completed", "failed", "cancelled")))
    unmade = exists().where(
        in_batch, col(ArchiveRow.run_id) == col(ContainerRun.id), col(ArchiveRow.state).in_((WAITING, BUILT))
    )
    row = BatchArchiveRow
    query = (
        select(Batch.id)
        .outerjoin(row, col(row.batch_id) == col(Batch.id))
        .where(
            or_(col(row.batch_id).is_(None), and_(col(row.state) == WAITING, col(row.not_before) <= now)), ~going, ~unmade
        )
        .order_by(col(Batch.id))
        .limit(1)
    )
    if oldest is not None:
        query = query.where(col(Batch.created_at) >= oldest)
    return session.exec(query).first()


def get_batch(session: Session, batch_id: str) -> BatchArchiveRow | None:
    return session.get(BatchArchiveRow, batch_id)


def lock_batch(session: Session, batch_id: str) -> BatchArchiveRow | None:
    return session.exec(select(BatchArchiveRow).where(BatchArchiveRow.batch_id == batch_id).with_for_update()).first()


def batch_changed(session: Session, batch_id: str, now: datetime) -> None:
    """A member was retried: the archive must be made again."""
    if (row := lock_batch(session, batch_id)) is not None:
        row.state, row.not_before = WAITING, now
        session.add(row)


def runs_of_batch(session: Session, batch_id: str) -> int:
    query = select(func.count()).select_from(ContainerRun).where(ContainerRun.batch_id == batch_id)
    return int(session.exec(query).one())
