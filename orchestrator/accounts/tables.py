"""Tables of accounts: users as known to their identity provider, workspaces and memberships."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Column, ForeignKey, Integer, UniqueConstraint, false
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime


class User(SQLModel, table=True):
    """A person. (issuer, subject) is the identity; everything else is what the provider last reported."""

    __tablename__ = "users"
    __table_args__ = (UniqueConstraint("issuer", "subject", name="uq_users_identity"),)
    id: int | None = Field(default=None, primary_key=True)
    issuer: str = Field(max_length=400)
    subject: str = Field(max_length=255)
    email: str = Field(default="", max_length=320)
    name: str = Field(default="", max_length=200)
    owner: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    """May do everything in every workspace and change what workspaces share."""
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    last_seen_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    disabled_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))


class Workspace(SQLModel, table=True):
    """The owner of runs, schedules, evals, traces, batches, keys and tokens. Never deleted."""

    __tablename__ = "workspaces"
    id: int | None = Field(default=None, primary_key=True)
    slug: str = Field(unique=True, max_length=60)
    name: str = Field(max_length=200)
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class Membership(SQLModel, table=True):
    """A user's role in a workspace: `viewer`, `member` or `admin`."""

    __tablename__ = "memberships"
    user_id: int = Field(sa_column=Column(Integer, ForeignKey("users.id"), primary_key=True, autoincrement=False))
    workspace_id: int = Field(
        sa_column=Column(Integer, ForeignKey("workspaces.id"), primary_key=True, autoincrement=False, index=True)
    )
    role: str = Field(max_length=20)
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
