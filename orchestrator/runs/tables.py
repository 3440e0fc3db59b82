"""The tables of runs. Rows stay inside `db` and the services that query them; request and response bodies are separate."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    Text,
    UniqueConstraint,
    false,
    text,
)
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import CompressedJson, TypedJson, UtcDateTime
from orchestrator.db.workspaces import Owned
from orchestrator.runs.queueing.drafts import TASK, Task

_HELD, _UNREMOVED, _REMOTE = text("ended_at IS NULL"), text("removed_at IS NULL"), text("agent_id IS NOT NULL")
EVENT_ID = BigInteger().with_variant(Integer(), "sqlite")


class ContainerRun(Owned, table=True):
    """One run: request, state, progress and result. These rows are the queue."""

    __tablename__ = "container_runs"
    __table_args__ = (
        Index("ix_runs_queue", "status", text("priority DESC"), "id"),
        Index("ix_runs_created", "created_at", "id"),
        Index("ix_runs_model", "model_id", "created_at"),
        Index("ix_runs_batch", "batch_id", "batch_slot"),
        Index("ix_runs_workspace", "workspace_id", "id"),
        Index("ix_runs_state", "workspace_id", "status", "id"),
        Index("ix_runs_days", "workspace_id", "created_at", "status"),
        Index("ix_runs_scored", "model_id", "kind", "status", "workspace_id", "id"),
        Index("ix_runs_kind", "workspace_id", "kind", "status", "id"),
    )
    id: str = Field(primary_key=True, max_length=36)
    kind: str = Field(default="benchmark", max_length=40)
    model_id: int | None = Field(default=None, foreign_key="models.id")
    """None if the run calls no model."""
    user_id: int | None = None
    """The user who created it, if any."""
    trigger_type: str = Field(default="manual", max_length=40)
    retry_of: str | None = Field(default=None, max_length=36)
    batch_id: str | None = Field(default=None, max_length=36)
    batch_slot: int | None = None
    # request
    benchmarks: list[str] = Field(sa_column=Column(JSON, nullable=False))
    sample_size: int
    subset_pct: float | None = None
    samples_per_problem: int = 1
    seed: int = 0
    instance_type: str = Field(max_length=100)
    provider: str | None = Field(default=None, max_length=60)
    concurrency: int = 4
    priority: int = 0
    budget_usd: float | None = None
    reuse_answers: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    batch: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    """Its calls go through the provider's batches, at their price."""
    deadline_s: int
    task: Task = Field(sa_column=Column(TypedJson(TASK), nullable=False))
    # state
    status: str = Field(default="pending", max_length=20)
    stage: str | None = Field(default=None, max_length=20)
    desired: str = Field(default="run", max_length=10)
    attempt: int = 0
    attempts_without_progress: int = Field(default=0, sa_column=Column("fruitless", Integer, nullable=False))
    items_at_start: int = 0
    not_before: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    start_deadline: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    lease_until: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    reason: str | None = Field(default=None, max_length=40)
    error_message: str | None = Field(default=None, sa_column=Column(Text))
    waiting_for: str | None = Field(default=None, sa_column=Column(Text))
    waiting_since: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    waited_s: float = Field(default=0.0, sa_column_kwargs={"server_default": "0"})
    inherited: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    """The run belongs to the installation that this one is a copy of; nothing here acts on it."""
    # progress and result
    items_total: int = 0
    items_done: int = 0
    items_passed: int = 0
    score: dict[str, Any] | None = Field(default=None, sa_column=Column(JSON))
    cost_usd: float = 0.0
    unpriced_calls: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    """Calls not included in `cost_usd` because their model had no price."""
    judge_cost_usd: float = Field(default=0.0, sa_column_kwargs={"server_default": "0"})
    """The part of `cost_usd` that the models that judged its answers cost."""
    input_tokens: int = 0
    output_tokens: int = 0
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    started_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    completed_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    # what people call it
    name: str | None = Field(default=None, max_length=200)
    tags: list[str] = Field(default_factory=list, sa_column=Column(JSON, nullable=False, server_default="[]"))
    note: str | None = Field(default=None, sa_column=Column(Text))
    author: str | None = Field(default=None, sa_column=Column(Text))
    """The name of who created it at that time; None if the service did."""
    # resolution of a run that was given up
    dismissed_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    """When it was dismissed, which ends its status as a dead letter."""
    succeeded_by: str | None = Field(default=None, max_length=36)
    """The completed retry of this run, direct or through other retries."""


class Attempt(SQLModel, table=True):
    """One container for a run."""

    __tablename__ = "attempts"
    __table_args__ = (
        # Of the few attempts among all that the scheduler asks for in every round.
        Index("ix_attempts_held", "run_id", sqlite_where=_HELD, postgresql_where=_HELD),
        Index("ix_attempts_unremoved", "run_id", sqlite_where=_UNREMOVED, postgresql_where=_UNREMOVED),
        Index("ix_attempts_dispatched", "dispatched_at"),
        Index("ix_attempts_agent_id", "agent_id", sqlite_where=_REMOTE, postgresql_where=_REMOTE),
    )
    run_id: str = Field(primary_key=True, foreign_key="container_runs.id", max_length=36)
    number: int = Field(primary_key=True)
    token_hash: str | None = Field(default=None, index=True, max_length=64)
    engine: str = Field(max_length=40)
    agent_id: str | None = Field(default=None, max_length=30)
    """The agent or task runner that has the attempt; None on our own engine."""
    instance_type: str = Field(max_length=100)
    container_name: str = Field(max_length=100)
    container_id: str | None = Field(default=None, max_length=100)
    sandbox_uid_base: int = 0
    runner_id: str | None = Field(default=None, max_length=100)
    last_seq: int = 0
    dispatched_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    launched_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    claimed_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    last_event_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    ended_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    removed_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    exit_code: int | None = None
    oom_killed: bool = False
    vcpu_s: float = 0.0
    gib_s: float = 0.0
    throttled_s: float = 0.0
    reason: str | None = Field(default=None, max_length=40)
    detail: str | None = Field(default=None, sa_column=Column(Text))
    log_tail: str | None = Field(default=None, sa_column=Column(Text))
    facts: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))

    @property
    def engine_label(self) -> str:
        """The engine as the API and archives name it."""
        return self.engine if self.agent_id is None else f"{self.engine}:{self.agent_id}"


class AttemptUsage(SQLModel, table=True):
    """Usage of an attempt, thinned by `machine_cost.merged`: a list of [at_s, cpu_s, memory_bytes, throttled_s]."""

    __tablename__ = "attempt_usage"
    __table_args__ = (ForeignKeyConstraint(["run_id", "number"], ["attempts.run_id", "attempts.number"]),)
    run_id: str = Field(primary_key=True, max_length=36)
    number: int = Field(primary_key=True)
    samples: list[list[float | None]] = Field(sa_column=Column(JSON, nullable=False))


class ItemRow(SQLModel, table=True):
    """The accepted result of an item. `data` holds everything that the runner sent."""

    __tablename__ = "item_results"
    __table_args__ = (Index("ix_items_outcome", "run_id", "outcome"), Index("ix_items_order", "run_id", "position"))
    run_id: str = Field(primary_key=True, foreign_key="container_runs.id", max_length=36)
    benchmark: str = Field(primary_key=True, max_length=100)
    problem_id: str = Field(primary_key=True, max_length=300)
    sample_index: int = Field(primary_key=True)
    position: int
    attempt: int
    outcome: str = Field(max_length=30)
    parity_outcome: str | None = Field(default=None, max_length=30)
    score: float | None = None
    """The value of the answer between 0 and 1; None if it is pass or fail."""
    detail: str = Field(default="", sa_column=Column(Text, nullable=False))
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_bytes: int = Field(default=0, sa_column=Column(BigInteger, nullable=False))
    input_tokens: int = 0
    output_tokens: int = 0
    tests_total: int = 0
    tests_passed: int = 0
    fragile: bool = False
    answer_digest: str | None = Field(default=None, max_length=64)
    data: dict[str, Any] = Field(sa_column=Column(CompressedJson, nullable=False))
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class Event(Owned, table=True):
    """Events in commit order; the ids are the numbers of the live streams."""

    __tablename__ = "events"
    __table_args__ = (
        UniqueConstraint("run_id", "attempt", "seq", name="uq_events_seq"),
        Index("ix_events_run", "run_id", "id"),
    )
    id: int | None = Field(default=None, sa_column=Column(EVENT_ID, primary_key=True, autoincrement=True))
    run_id: str | None = Field(default=None, max_length=36)
    attempt: int | None = None
    seq: int | None = None
    type: str = Field(max_length=40)
    data: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class Artefact(SQLModel, table=True):
    """A file that a runner uploaded; its content is in the data directory."""

    __tablename__ = "artefacts"
    run_id: str = Field(primary_key=True, foreign_key="container_runs.id", max_length=36)
    name: str = Field(primary_key=True, max_length=100)
    attempt: int
    size_bytes: int = Field(sa_column=Column(BigInteger, nullable=False))
    sha256: str = Field(max_length=64)
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class Lease(SQLModel, table=True):
    """The leader lease. The epoch grows with every change of leader and guards every write of the leader."""

    __tablename__ = "leases"
    name: str = Field(primary_key=True, max_length=40)
    holder: str = Field(max_length=100)
    epoch: int
    until: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
