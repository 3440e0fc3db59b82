"""Tables of retention: pinned runs, and records of deleted runs."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Column, Index, false
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime
from orchestrator.db.workspaces import Owned


class PinnedRun(SQLModel, table=True):
    """A run that cannot be deleted until it is unpinned."""

    __tablename__ = "pinned_runs"
    run_id: str = Field(primary_key=True, foreign_key="container_runs.id", max_length=36)
    pinned_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class DeletedRun(Owned, table=True):
    """The record of a deleted run: its existence, what it belonged to, and its usage. Costs already incurred still count.

    Until `purged`, rows of the run are still being deleted; the run itself is no longer visible.
    """

    __tablename__ = "deleted_runs"
    __table_args__ = (
        Index("ix_deleted_workspace", "workspace_id", "id"),
        Index("ix_deleted_batch", "batch_id"),
        Index("ix_deleted_unpurged", "purged", "id"),
    )
    id: str = Field(primary_key=True, max_length=36)
    kind: str = Field(max_length=40)
    model_id: int | None = None
    batch_id: str | None = Field(default=None, max_length=36)
    scheduled: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    status: str = Field(max_length=20)
    day: str = Field(max_length=10)
    """The day (UTC) of its first attempt, to which its machine usage is attributed."""
    vcpu_s: float = 0.0
    gib_s: float = 0.0
    throttled_s: float = 0.0
    cost_usd: float = 0.0
    unpriced_calls: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    deleted_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    deleted_by: str = Field(max_length=200)
    purged: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
