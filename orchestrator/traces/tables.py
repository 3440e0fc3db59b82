"""Tables of traces."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Column, ForeignKey, Index, String, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import CompressedJson, UtcDateTime
from orchestrator.db.workspaces import Owned
from orchestrator.evals.tables import NUMBER
from orchestrator.runs.tables import EVENT_ID


class Trace(Owned, table=True):
    """One recorded action of an application. `number` is ours, in order of arrival; `id` is the application's."""

    __tablename__ = "traces"
    __table_args__ = (
        UniqueConstraint("workspace_id", "id", name="uq_traces_workspace"),
        Index("ix_traces_project", "project", "number"),
    )
    number: int | None = Field(default=None, sa_column=Column(EVENT_ID, primary_key=True, autoincrement=True))
    id: str = Field(max_length=200)
    project: str = Field(default="", max_length=100)
    digest: str = Field(max_length=64)
    data: dict[str, Any] = Field(sa_column=Column(CompressedJson, nullable=False))
    """input, output, steps, metadata"""
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class TraceFeedback(SQLModel, table=True):
    """Feedback on a trace within one eval set."""

    __tablename__ = "trace_feedback"
    __table_args__ = (Index("ix_feedback_trace", "trace_number"),)
    eval_set_id: str = Field(sa_column=Column(String(36), ForeignKey("eval_sets.id"), primary_key=True))
    trace_number: int = Field(sa_column=Column(NUMBER, ForeignKey("traces.number"), primary_key=True))
    rating: str = Field(max_length=10)
    note: str = Field(default="", sa_column=Column(Text, nullable=False))
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    updated_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
