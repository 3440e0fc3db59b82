"""The tables of batches and archives."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Column, Index, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime
from orchestrator.db.owned import Owned


class Batch(Owned, table=True):
    """What was asked for as one; its members are the runs that name it. Its state is theirs, and never stored."""

    __tablename__ = "batches"
    __table_args__ = (UniqueConstraint("workspace_id", "external_id", name="uq_batches_workspace"),)
    id: str = Field(primary_key=True, max_length=36)
    external_id: int = Field(sa_column=Column(BigInteger, nullable=False))
    name: str = Field(default="", max_length=200)
    user_id: int | None = None
    """Who made it, if it was a user."""
    request: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    end_asked_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    end_mode: str | None = Field(default=None, max_length=10)


class ArchiveRow(SQLModel, table=True):
    """The archive of an ended run. Made with the run's end; the queue until the file is where it belongs."""

    __tablename__ = "archives"
    __table_args__ = (Index("ix_archives_queue", "state", "not_before"), Index("ix_archives_stored", "stored_at"))
    run_id: str = Field(primary_key=True, foreign_key="container_runs.id", max_length=36)
    state: str = Field(default="waiting", max_length=20)
    kind: str | None = Field(default=None, max_length=10)
    place: str | None = Field(default=None, max_length=10)
    size_bytes: int | None = Field(default=None, sa_column=Column(BigInteger))
    sha256: str | None = Field(default=None, max_length=64)
    grading_digest: str | None = Field(default=None, max_length=64)
    tries: int = 0
    not_before: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    error: str | None = Field(default=None, sa_column=Column(Text))
    stored_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))


class BatchArchiveRow(SQLModel, table=True):
    """The archive of an ended batch in the object store; made with the first try. Out of date when `runs` is."""

    __tablename__ = "batch_archives"
    batch_id: str = Field(primary_key=True, foreign_key="batches.id", max_length=36)
    state: str = Field(default="waiting", max_length=20)
    runs: int = 0
    size_bytes: int | None = Field(default=None, sa_column=Column(BigInteger))
    sha256: str | None = Field(default=None, max_length=64)
    tries: int = 0
    not_before: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    error: str | None = Field(default=None, sa_column=Column(Text))
    stored_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
