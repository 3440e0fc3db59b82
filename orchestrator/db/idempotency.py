"""Statements on remembered POST answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import delete
from sqlmodel import Session, col

from orchestrator.db.insert_once import insert_once
from orchestrator.db.service_tables import IdempotencyKey
from orchestrator.db.workspaces import workspace_of


def find(session: Session, scope: str, key: str) -> IdempotencyKey | None:
    return session.get(IdempotencyKey, (workspace_of(session), key, scope))


def remember(
    session: Session, scope: str, key: str, request_hash: str, answer: dict[str, Any], now: datetime
) -> IdempotencyKey | None:
    """Keep the answer; or the answer that is kept already, if another request with this key was quicker."""
    row = IdempotencyKey(key=key, scope=scope, request_hash=request_hash, answer=answer, created_at=now)
    return None if insert_once(session, row) else find(session, scope, key)


def settle(session: Session, scope: str, key: str, answer: dict[str, Any]) -> None:
    """Put the answer to a key that was remembered in the same transaction, before the answer was known."""
    row = find(session, scope, key)
    assert row is not None
    row.answer = answer
    session.add(row)


def forget_before(session: Session, before: datetime) -> int:
    return int(session.connection().execute(delete(IdempotencyKey).where(col(IdempotencyKey.created_at) < before)).rowcount)
