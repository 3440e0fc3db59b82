"""The tables of runners that stand ready for a run they do not know yet, and of what they use meanwhile."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Column, Text
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime


class WarmRunner(SQLModel, table=True):
    """One container that was started ahead of its run. Once it is taken, the run's attempt speaks for the container."""

    __tablename__ = "warm_runners"
    id: str = Field(primary_key=True, max_length=36)
    container_name: str = Field(unique=True, max_length=100)
    container_id: str | None = Field(default=None, max_length=100)
    token_hash: str = Field(index=True, max_length=64)
    engine: str = Field(max_length=40)
    instance_type: str = Field(max_length=100)
    sandbox_uid_base: int
    epoch: int
    """Of the leader that launched it: a later one may have another image or other settings, and starts its own."""
    runner_id: str | None = Field(default=None, max_length=100)
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    ready_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    seen_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    run_id: str | None = Field(default=None, max_length=36)
    attempt: int | None = None
    retired: str | None = Field(default=None, sa_column=Column(Text))
    """Why it must go, once that is decided."""
    cpu_s: float = Field(default=0.0, sa_column_kwargs={"server_default": "0"})
    """Processor time that its runner has reported so far; all of it is in `IdleUsage`."""
    memory_bytes: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    """What it held at its last report."""


class IdleUsage(SQLModel, table=True):
    """What runners of one instance type used on one day (UTC) while they stood ready, apart from any run."""

    __tablename__ = "idle_usage"
    day: str = Field(primary_key=True, max_length=10)
    instance_type: str = Field(primary_key=True, max_length=100)
    ready_s: float = 0.0
    """How long they stood ready, all together."""
    vcpu_s: float = 0.0
    gib_s: float = 0.0
