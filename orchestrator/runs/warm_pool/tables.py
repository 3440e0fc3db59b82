"""Tables of the warm pool: runners that wait for a run, and their idle usage."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Column, Text
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime


class WarmRunner(SQLModel, table=True):
    """One container started ahead of its run. Once a run has taken it, the run's attempt describes the container."""

    __tablename__ = "warm_runners"
    id: str = Field(primary_key=True, max_length=36)
    container_name: str = Field(unique=True, max_length=100)
    container_id: str | None = Field(default=None, max_length=100)
    token_hash: str = Field(index=True, max_length=64)
    engine: str = Field(max_length=40)
    instance_type: str = Field(max_length=100)
    sandbox_uid_base: int
    epoch: int
    """Epoch of the leader that launched it. A later leader may have another image or settings, and starts its own."""
    runner_id: str | None = Field(default=None, max_length=100)
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    ready_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    seen_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    run_id: str | None = Field(default=None, max_length=36)
    attempt: int | None = None
    retired: str | None = Field(default=None, sa_column=Column(Text))
    """Why it must go, once that is decided."""
    cpu_s: float = Field(default=0.0, sa_column_kwargs={"server_default": "0"})
    """CPU time that its runner has reported so far, all of it already included in `IdleUsage`."""
    memory_bytes: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    """Memory use at its last report."""


class IdleUsage(SQLModel, table=True):
    """Usage of an instance type's warm runners on one day (UTC) while they waited for a run."""

    __tablename__ = "idle_usage"
    day: str = Field(primary_key=True, max_length=10)
    instance_type: str = Field(primary_key=True, max_length=100)
    ready_s: float = 0.0
    """Their total waiting time."""
    vcpu_s: float = 0.0
    gib_s: float = 0.0
