"""Tables of sign in."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Column, ForeignKey, Integer, Text
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime


class LoginSession(SQLModel, table=True):
    """A browser or a command line where somebody is signed in. Its secret is not here: the hash is, and finds it."""

    __tablename__ = "login_sessions"
    id: str = Field(primary_key=True, max_length=36)
    secret_hash: str = Field(unique=True, max_length=64)
    previous_hash: str | None = Field(default=None, index=True, max_length=64)
    """The secret before the last rotation, for requests that were on their way; after `previous_until` its use ends all."""
    previous_until: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    user_id: int = Field(sa_column=Column(Integer, ForeignKey("users.id"), nullable=False, index=True))
    workspace_id: int = Field(sa_column=Column(Integer, ForeignKey("workspaces.id"), nullable=False))
    """The one that its pages show."""
    agent: str = Field(default="", max_length=200)
    """What the browser calls itself, so that people know their sign-ins apart."""
    address: str = Field(default="", max_length=60)
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    seen_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    rotated_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    expires_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False, index=True))
    tokens_until: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    """Until when the provider's word holds; then it is asked again with the refresh token."""
    refresh_token: str | None = Field(default=None, sa_column=Column(Text))
    """Sealed, and so are the others below: their key is not in the database."""
    access_token: str | None = Field(default=None, sa_column=Column(Text))
    id_token: str | None = Field(default=None, sa_column=Column(Text))


class LoginAttempt(SQLModel, table=True):
    """A sign-in between its beginning here and its return from the identity provider. Used once."""

    __tablename__ = "login_attempts"
    state_hash: str = Field(primary_key=True, max_length=64)
    browser_hash: str = Field(max_length=64)
    """Of a cookie: only the browser that began may end it."""
    nonce: str = Field(max_length=100)
    verifier: str = Field(max_length=128)
    wanted: str = Field(default="", sa_column=Column(Text, nullable=False))
    loopback: str | None = Field(default=None, sa_column=Column(Text))
    """Where a command line waits for the outcome."""
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    expires_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False, index=True))
