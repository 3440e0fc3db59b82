"""Tables of sign-ins."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Column, ForeignKey, Integer, Text
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime


class LoginSession(SQLModel, table=True):
    """A browser or command line in which somebody is signed in. It holds only the hash of the secret."""

    __tablename__ = "login_sessions"
    id: str = Field(primary_key=True, max_length=36)
    secret_hash: str = Field(unique=True, max_length=64)
    previous_hash: str | None = Field(default=None, index=True, max_length=64)
    """The secret before the last rotation, for requests in flight; its use after `previous_until` ends the session."""
    previous_until: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    user_id: int = Field(sa_column=Column(Integer, ForeignKey("users.id"), nullable=False, index=True))
    workspace_id: int = Field(sa_column=Column(Integer, ForeignKey("workspaces.id"), nullable=False))
    """The workspace that its pages show."""
    agent: str = Field(default="", max_length=200)
    """The browser's user agent, so that people can tell their sessions apart."""
    address: str = Field(default="", max_length=60)
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    seen_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    rotated_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    expires_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False, index=True))
    tokens_until: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    """How long the provider's confirmation is valid; then it is asked again with the refresh token."""
    refresh_token: str | None = Field(default=None, sa_column=Column(Text))
    """Sealed like the tokens below: the key is not in the database."""
    access_token: str | None = Field(default=None, sa_column=Column(Text))
    id_token: str | None = Field(default=None, sa_column=Column(Text))


class LoginAttempt(SQLModel, table=True):
    """A sign-in that has not returned from the identity provider yet. Used once."""

    __tablename__ = "login_attempts"
    state_hash: str = Field(primary_key=True, max_length=64)
    browser_hash: str = Field(max_length=64)
    """Hash of a cookie: only the browser that started the attempt may finish it."""
    nonce: str = Field(max_length=100)
    verifier: str = Field(max_length=128)
    wanted: str = Field(default="", sa_column=Column(Text, nullable=False))
    loopback: str | None = Field(default=None, sa_column=Column(Text))
    """The address on which a command line waits for the result."""
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    expires_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False, index=True))
