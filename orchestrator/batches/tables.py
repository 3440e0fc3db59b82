"""The table of batches."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Column, UniqueConstraint
from sqlmodel import Field

from orchestrator.db.columns import UtcDateTime
from orchestrator.db.workspaces import Owned


class Batch(Owned, table=True):
    """A group of runs requested together; its members are the runs with its id. Its state is derived from theirs."""

    __tablename__ = "batches"
    __table_args__ = (UniqueConstraint("workspace_id", "external_id", name="uq_batches_workspace"),)
    id: str = Field(primary_key=True, max_length=36)
    external_id: int = Field(sa_column=Column(BigInteger, nullable=False))
    name: str = Field(default="", max_length=200)
    user_id: int | None = None
    """The user who created it, if any."""
    request: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    end_asked_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    end_mode: str | None = Field(default=None, max_length=10)
