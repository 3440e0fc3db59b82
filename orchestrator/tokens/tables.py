"""The table of named API tokens."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Column, UniqueConstraint
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime
from orchestrator.db.workspaces import Owned


class ApiToken(Owned, table=True):
    """A named token. Only the hash of its secret is stored."""

    __tablename__ = "api_tokens"
    __table_args__ = (UniqueConstraint("workspace_id", "name", name="uq_api_tokens_workspace"),)
    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(max_length=100)
    user_id: int | None = None
    """The creator, whose rights it never exceeds. None: created with the installation's own token."""
    secret_hash: str = Field(unique=True, max_length=64)
    scope: str = Field(max_length=20)
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    expires_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    last_used_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))


class EndedPageSession(SQLModel, table=True):
    """A page session of a token that was signed out. Its cookie would be valid until it expires, so its hash is kept until
    then.
    """

    __tablename__ = "ended_page_sessions"
    cookie_hash: str = Field(primary_key=True, max_length=64)
    until: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
