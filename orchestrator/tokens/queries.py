"""Statements on API tokens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, update
from sqlmodel import Session, col, select

from orchestrator.tokens.tables import ApiToken, EndedPageSession


def all_tokens(session: Session) -> Sequence[ApiToken]:
    return session.exec(select(ApiToken).order_by(col(ApiToken.id))).all()


def by_hash(session: Session, secret_hash: str) -> ApiToken | None:
    return session.exec(select(ApiToken).where(ApiToken.secret_hash == secret_hash)).first()


def by_id(session: Session, token_id: int) -> ApiToken | None:
    return session.get(ApiToken, token_id) if 0 < token_id < 2**31 else None


def mark_used(session: Session, token_id: int, now: datetime) -> None:
    session.connection().execute(update(ApiToken).where(col(ApiToken.id) == token_id).values(last_used_at=now))


def of_user(session: Session, user_id: int) -> Sequence[ApiToken]:
    return session.exec(select(ApiToken).where(ApiToken.user_id == user_id).order_by(col(ApiToken.id))).all()


def end_page_session(session: Session, cookie_hash: str, until: datetime, now: datetime) -> None:
    """Stores the ended session until its cookie would have expired, and deletes expired rows."""
    session.connection().execute(delete(EndedPageSession).where(col(EndedPageSession.until) < now))
    session.merge(EndedPageSession(cookie_hash=cookie_hash, until=until))


def page_session_ended(session: Session, cookie_hash: str) -> bool:
    return session.get(EndedPageSession, cookie_hash) is not None
