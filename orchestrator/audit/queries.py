"""Statements on the audit log: add, list, and delete old entries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from sqlalchemy import delete, or_
from sqlmodel import Session, col, select

from orchestrator.audit.tables import AuditEntry, AuditRetention


class ActorKind(StrEnum):
    OWNER = "owner"  #: the installation's own token
    USER = "user"  #: a user with an account
    TOKEN = "token"  #: a named token  # noqa: S105
    SYSTEM = "system"  #: the service itself: a schedule fired, something expired
    NOBODY = "nobody"  #: an unauthenticated caller


def add(session: Session, *entries: AuditEntry) -> None:
    session.add_all(entries)
    session.flush()


def add_by_system(
    session: Session, now: datetime, action: str, object_id: str, detail: str = "", workspace_id: int | None = None
) -> None:
    """Records an action of the service itself, in the transaction of the change."""
    entry = AuditEntry(
        at=now,
        actor_kind=ActorKind.SYSTEM,
        actor="the service",
        action=action,
        object_id=object_id[:300],
        detail=detail[:1000],
        workspace_id=workspace_id,
    )
    add(session, entry)


def page(
    session: Session,
    *,
    limit: int,
    before: int | None = None,
    workspace_id: int | None = None,
    actor: str | None = None,
    action: str | None = None,
    object_id: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    refused: bool | None = None,
) -> Sequence[AuditEntry]:
    """Newest first. `action` and `actor` match anywhere in the text."""
    query = select(AuditEntry)
    if before is not None:
        query = query.where(col(AuditEntry.id) < before)
    if workspace_id is not None:
        query = query.where(AuditEntry.workspace_id == workspace_id)
    if actor is not None:
        query = query.where(col(AuditEntry.actor).icontains(actor, autoescape=True))
    if action is not None:
        query = query.where(col(AuditEntry.action).icontains(action, autoescape=True))
    if object_id is not None:
        query = query.where(AuditEntry.object_id == object_id)
    if since is not None:
        query = query.where(col(AuditEntry.at) >= since)
    if until is not None:
        query = query.where(col(AuditEntry.at) < until)
    if refused is not None:
        no = col(AuditEntry.status) >= 400
        query = query.where(no if refused else or_(~no, col(AuditEntry.status).is_(None)))
    return session.exec(query.order_by(col(AuditEntry.id).desc()).limit(limit)).all()


def prune(session: Session, before: datetime, now: datetime, decided_by: str) -> int:
    """Deletes all entries before a time; the decision itself stays recorded."""
    session.add(AuditRetention(before=before, decided_at=now, decided_by=decided_by[:200]))
    session.flush()
    return int(session.connection().execute(delete(AuditEntry).where(col(AuditEntry.at) < before)).rowcount)
