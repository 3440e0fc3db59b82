"""Statements on remembered POST answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import delete
from sqlmodel import Session, col

from orchestrator.db.tables import IdempotencyKey


def find(session: Session, scope: str, key: str) -> IdempotencyKey | None:
    return session.get(IdempotencyKey, (key, scope))


def remember(session: Session, scope: str, key: str, request_hash: str, answer: dict[str, Any], now: datetime) -> None:
    session.add(IdempotencyKey(key=key, scope=scope, request_hash=request_hash, answer=answer, created_at=now))
    session.flush()


def forget_before(session: Session, before: datetime) -> int:
    return int(session.connection().execute(delete(IdempotencyKey).where(col(IdempotencyKey.created_at) < before)).rowcount)
