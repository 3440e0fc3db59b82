"""Statements on sign-ins: users' sessions, and attempts that have not returned from the identity provider yet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, or_, update
from sqlmodel import Session, col, select

from orchestrator.accounts.tables import User
from orchestrator.sign_in.tables import LoginAttempt, LoginSession


def by_secret(session: Session, secret_hash: str) -> LoginSession | None:
    """The session with this secret, or with it as the secret before the last rotation."""
    query = select(LoginSession).where(
        or_(col(LoginSession.secret_hash) == secret_hash, col(LoginSession.previous_hash) == secret_hash)
    )
    return session.exec(query).first()


def of_user(session: Session, user_id: int, now: datetime) -> Sequence[LoginSession]:
    """A user's active sessions, newest first."""
    query = select(LoginSession).where(LoginSession.user_id == user_id, col(LoginSession.expires_at) > now)
    return session.exec(query.order_by(col(LoginSession.id).desc())).all()


def get(session: Session, session_id: str) -> LoginSession | None:
    return session.get(LoginSession, session_id)


def change(session: Session, session_id: str, was: dict[str, Any], **values: Any) -> bool:
    """Updates columns if the columns in `was` still have those values; returns whether they had."""
    table: Any = LoginSession.__table__  # type: ignore[attr-defined]
    same = [table.c[name].is_not_distinct_from(value) for name, value in was.items()]
    statement = update(table).where(table.c.id == session_id, *same).values(**values)
    return session.connection().execute(statement).rowcount == 1


def end(session: Session, session_id: str) -> None:
    session.connection().execute(delete(LoginSession).where(col(LoginSession.id) == session_id))


def end_all(session: Session, user_id: int) -> int:
    statement = delete(LoginSession).where(col(LoginSession.user_id) == user_id)
    return int(session.connection().execute(statement).rowcount)


def take_attempt(session: Session, state_hash: str) -> LoginAttempt | None:
    """Deletes and returns the attempt: it can be used only once, whatever the result."""
    row = session.exec(select(LoginAttempt).where(LoginAttempt.state_hash == state_hash).with_for_update()).first()
    if row is not None:
        session.expunge(row)
        session.connection().execute(delete(LoginAttempt).where(col(LoginAttempt.state_hash) == state_hash))
    return row


def forget_before(session: Session, now: datetime) -> None:
    session.connection().execute(delete(LoginAttempt).where(col(LoginAttempt.expires_at) < now))
    session.connection().execute(delete(LoginSession).where(col(LoginSession.expires_at) < now))


def with_access_token(session: Session, user_id: int, now: datetime) -> tuple[LoginSession, User] | None:
    """The newest sign-in of an enabled user that has an access token."""
    query = (
        select(LoginSession, User)
        .join(User, col(User.id) == col(LoginSession.user_id))
        .where(
            LoginSession.user_id == user_id,
            col(LoginSession.access_token).is_not(None),
            col(LoginSession.expires_at) > now,
            col(User.disabled_at).is_(None),
        )
        .order_by(col(LoginSession.created_at).desc())
    )
    row = session.exec(query).first()
    return None if row is None else (row[0], row[1])


def everyone(session: Session) -> Sequence[LoginSession]:
    return session.exec(select(LoginSession).with_for_update()).all()
