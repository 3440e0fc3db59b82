"""Statements on archives. A row is made with the end of its run, and waits until the run's containers are gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import exists
from sqlmodel import Session, col, select

from orchestrator.db.batch_tables import ArchiveRow
from orchestrator.db.insert_once import insert_once
from orchestrator.db.tables import Attempt

WAITING = "waiting"
BUILT = "built"
STORED = "stored"
EXPIRED = "expired"


def want(session: Session, run_id: str, now: datetime) -> None:
    """The run has ended: it shall have an archive."""
    insert_once(session, ArchiveRow(run_id=run_id, not_before=now))


def due(session: Session, now: datetime, limit: int) -> Sequence[ArchiveRow]:
    """Those to be made or carried away now, longest waiting first; the log of a container is there once it is removed."""
    left = exists().where(col(Attempt.run_id) == col(ArchiveRow.run_id), col(Attempt.removed_at).is_(None))
    query = select(ArchiveRow).where(col(ArchiveRow.state).in_((WAITING, BUILT)), col(ArchiveRow.not_before) <= now, ~left)
    return session.exec(query.order_by(col(ArchiveRow.not_before), col(ArchiveRow.run_id)).limit(limit)).all()


def get(session: Session, run_id: str) -> ArchiveRow | None:
    return session.get(ArchiveRow, run_id)


def lock(session: Session, run_id: str) -> ArchiveRow | None:
    return session.exec(select(ArchiveRow).where(ArchiveRow.run_id == run_id).with_for_update()).first()


def of_runs(session: Session, run_ids: Iterable[str]) -> dict[str, ArchiveRow]:
    rows = session.exec(select(ArchiveRow).where(col(ArchiveRow.run_id).in_(list(run_ids)))).all()
    return {row.run_id: row for row in rows}


def stored(session: Session) -> list[tuple[str, int, datetime]]:
    """(run, size, since when) of all stored files, oldest first."""
    query = (
        select(ArchiveRow.run_id, ArchiveRow.size_bytes, ArchiveRow.stored_at)
        .where(ArchiveRow.state == STORED)
        .order_by(col(ArchiveRow.stored_at), col(ArchiveRow.run_id))
    )
    return [(run_id, size or 0, at) for run_id, size, at in session.exec(query).all() if at is not None]
