"""Tables of archives."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Column, Index, Text
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime


class ArchiveRow(SQLModel, table=True):
    """The archive of an ended run. Created when the run ends; it is the queue entry until the file is stored."""

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
    """The archive of an ended batch in the object store; created with the first try. Outdated if `runs` differs from the
    batch's.
    """

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
