"""Tables of schedules: when a model is measured again, on which problems, and the outcome of every instant."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import JSON, Column, ForeignKey, Index, Integer, Text, false
from sqlmodel import Field

from orchestrator.db.columns import CompressedJson, TypedJson, UtcDateTime
from orchestrator.db.workspaces import Owned, owned_key
from runner.contract.harness import HarnessTask

_HARNESS: TypeAdapter[HarnessTask | None] = TypeAdapter(HarnessTask | None)


def _model_key() -> Column[int]:
    """Part of the primary key; deleted with its model."""
    return Column(Integer, ForeignKey("models.id", ondelete="CASCADE"), primary_key=True, autoincrement=False)


class Schedule(Owned, table=True):
    """When a model is measured again; one per workspace and model."""

    __tablename__ = "schedules"
    workspace_id: int = owned_key()
    model_id: int = Field(sa_column=_model_key())
    user_id: int | None = None
    """The user who created it, if any."""
    cron_expression: str = Field(max_length=200)
    timezone: str = Field(default="UTC", max_length=60)
    # what is run
    harness: HarnessTask | None = Field(default=None, sa_column=Column(TypedJson(_HARNESS)))
    """Takes the place of benchmarks; the sample size is then 0."""
    sample_size: int
    benchmarks: list[str] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    samples_per_problem: int = 1
    instance_type: str | None = Field(default=None, max_length=100)
    concurrency: int = 8
    priority: int = 0
    budget_usd: float | None = None
    batch: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    seed: int = 0
    draw: str = Field(default="all", max_length=20)
    panel_version: int = 1
    # when it runs
    misfire: str = Field(default="newest", max_length=20)
    misfire_grace_s: int = 3600
    overlap: str = Field(default="forbid", max_length=20)
    paused: bool = False
    next_fire_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime, index=True))
    # what it is compared with
    baseline: str = Field(default="rolling", max_length=20)
    baseline_run_id: str | None = Field(default=None, max_length=36)
    baseline_runs: int = 30
    alarm_rate: float = 0.05
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    updated_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class SchedulePanel(Owned, table=True):
    """The problems that a schedule uses, drawn once. A change creates a new version; old ones stay."""

    __tablename__ = "schedule_panels"
    workspace_id: int = owned_key()
    model_id: int = Field(sa_column=_model_key())
    version: int = Field(primary_key=True)
    seed: int
    draw: str = Field(max_length=20)
    how: str = Field(sa_column=Column(Text, nullable=False))
    benchmarks: list[dict[str, Any]] = Field(sa_column=Column(CompressedJson, nullable=False))
    problems: int
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class ScheduleFire(Owned, table=True):
    """The outcome of one instant of a schedule. The key prevents an instant from being used twice."""

    __tablename__ = "schedule_fires"
    __table_args__ = (
        Index("ix_fires_run", "run_id"),
        Index("ix_fires_unjudged", "verdict", "run_id"),
        Index("ix_fires_panel", "model_id", "panel_version", "look"),
    )
    workspace_id: int = owned_key()
    model_id: int = Field(sa_column=_model_key())
    instant: datetime = Field(sa_column=Column(UtcDateTime, primary_key=True))
    outcome: str = Field(max_length=30)
    cause: str = Field(default="cron", max_length=20)
    run_id: str | None = Field(default=None, foreign_key="container_runs.id", max_length=36)
    panel_version: int
    late_s: float = 0.0
    detail: str = Field(default="", sa_column=Column(Text, nullable=False))
    recorded_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    # filled in when the run has ended
    verdict: str | None = Field(default=None, max_length=20)
    look: int | None = None
    comparison: dict[str, Any] | None = Field(default=None, sa_column=Column(CompressedJson))
    judged_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
