"""Tables of evals: sets, evals, verdicts, disputes, and the data of eval jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Float, ForeignKey, Index, String, Text, UniqueConstraint, column, table
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import CompressedJson, UtcDateTime
from orchestrator.db.workspaces import Owned

NUMBER = BigInteger()


class EvalSet(Owned, table=True):
    """A question that people answer about traces, for example whether an answer was helpful."""

    __tablename__ = "eval_sets"
    __table_args__ = (UniqueConstraint("workspace_id", "name", name="uq_eval_sets_workspace"),)
    id: str = Field(primary_key=True, max_length=36)
    name: str = Field(max_length=200)
    description: str = Field(default="", sa_column=Column(Text, nullable=False))
    project: str | None = Field(default=None, max_length=100)
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    updated_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class Eval(Owned, table=True):
    """One version of an eval. Its code never changes."""

    __tablename__ = "evals"
    __table_args__ = (UniqueConstraint("eval_set_id", "name", "version", name="uq_evals_version"),)
    id: str = Field(primary_key=True, max_length=36)
    eval_set_id: str = Field(foreign_key="eval_sets.id", max_length=36, index=True)
    name: str = Field(max_length=200)
    version: int
    description: str = Field(default="", sa_column=Column(Text, nullable=False))
    code: str = Field(sa_column=Column(Text, nullable=False))
    model_id: int | None = Field(default=None, foreign_key="models.id")
    """None if a person wrote it."""
    run_id: str = Field(max_length=36)
    training_n: int
    training_right: int
    held_out_n: int
    held_out_right: int
    tests: list[dict[str, Any]] = Field(sa_column=Column(CompressedJson, nullable=False))
    rounds: list[dict[str, Any]] = Field(sa_column=Column(CompressedJson, nullable=False))
    execution_count: int = 0
    passed_count: int = 0
    failure_count: int = 0
    contradiction_count: int = 0
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    updated_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class EvalExecution(SQLModel, table=True):
    """An eval's verdict on a trace; there is at most one."""

    __tablename__ = "eval_executions"
    __table_args__ = (Index("ix_executions_trace", "trace_number"), Index("ix_executions_run", "run_id"))
    eval_id: str = Field(sa_column=Column(String(36), ForeignKey("evals.id"), primary_key=True))
    trace_number: int = Field(sa_column=Column(NUMBER, ForeignKey("traces.number"), primary_key=True))
    run_id: str = Field(max_length=36)
    passed: bool | None = None
    score: float | None = None
    reason: str = Field(default="", sa_column=Column(Text, nullable=False))
    failure: str | None = Field(default=None, max_length=20)
    wall_ms: float = 0.0
    at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class EvalDispute(SQLModel, table=True):
    """Somebody reviewed a contradiction and upheld the label: the eval is wrong about the trace."""

    __tablename__ = "eval_disputes"
    __table_args__ = (Index("ix_disputes_trace", "trace_number"),)
    eval_id: str = Field(sa_column=Column(String(36), ForeignKey("evals.id"), primary_key=True))
    trace_number: int = Field(sa_column=Column(NUMBER, ForeignKey("traces.number"), primary_key=True))
    at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class EvalJob(SQLModel, table=True):
    """The data of an eval run besides its task: set, eval, progress and result."""

    __tablename__ = "eval_jobs"
    run_id: str = Field(primary_key=True, foreign_key="container_runs.id", max_length=36)
    eval_set_id: str = Field(max_length=36, index=True)
    eval_id: str | None = Field(default=None, max_length=36, index=True)
    stage: str | None = Field(default=None, max_length=30)
    percent: int = 0
    stage_done: int | None = None
    stage_total: int | None = None
    detail: str = Field(default="", sa_column=Column(Text, nullable=False))
    spent_ms: float = 0.0
    error_code: str | None = Field(default=None, max_length=40)
    result: dict[str, Any] | None = Field(default=None, sa_column=Column(CompressedJson))
    rounds: list[dict[str, Any]] | None = Field(default=None, sa_column=Column(CompressedJson))
    """The model's answers so far, with the problems found in each."""


VERDICTS = table(
    "eval_verdicts",
    column("eval_id", String),
    column("eval_set_id", String),
    column("trace_number", BigInteger),
    column("trace_id", String),
    column("passed", Boolean),
    column("score", Float),
    column("reason", Text),
    column("failure", String),
    column("wall_ms", Float),
    column("at", UtcDateTime),
    column("rating", String),
    column("note", Text),
    column("contradiction", Boolean),
)
"""The view that joins executions with feedback. A contradiction is a verdict that is the opposite of the label."""
