"""Response bodies of jobs: one form for runs of every kind and for datasets that are being added."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from orchestrator.evals.schemas import RoundOut
from orchestrator.http.schemas import Answer
from orchestrator.runs.schemas import COST, KNOWN_COST, UNPRICED, Progress
from runner.contract.run_spec import RunKind


class JobType(StrEnum):
    BENCHMARK = RunKind.BENCHMARK.value
    GRADE = RunKind.GRADE.value
    EVAL_GENERATE = RunKind.EVAL_GENERATE.value
    EVAL_EXECUTE = RunKind.EVAL_EXECUTE.value
    COMMAND = RunKind.COMMAND.value
    HARNESS = RunKind.HARNESS.value
    DATASET_BUILD = "dataset_build"  #: a dataset is downloaded and built; known until the service restarts


class JobError(Answer):
    code: str
    reason: str | None
    message: str


class JobOut(Answer):
    id: str
    type: str
    status: str
    stage: str | None
    percent: int
    progress: Progress
    detail: str = ""
    average_ms: float | None = None
    priority: int
    attempt: int
    dead_letter: bool = Field(
        description="Given up after 3 attempts in a row that brought nothing; neither dismissed nor retried with success."
    )
    dismissed_at: datetime | None = None
    succeeded_by: str | None = Field(default=None, description="The retry that completed.")
    model: str | None
    name: str | None = Field(default=None, description="Of a dataset that is being added.")
    retriable: bool = Field(default=True, description="Whether it can be tried again, once it has failed or was cancelled.")
    eval_set_id: str | None = None
    eval_id: str | None = None
    error: JobError | None = None
    retry_of: str | None = None
    next_attempt_at: datetime | None = None
    cost_usd: float | None = Field(default=0.0, description=COST)
    known_cost_usd: float = Field(default=0.0, description=KNOWN_COST)
    unpriced_calls: int = Field(default=0, description=UNPRICED)
    created_at: datetime
    started_at: datetime | None = None
    completed_at: datetime | None = None


class JobDetail(JobOut):
    rounds: list[RoundOut] = Field(default=[], description="Of a job that has an eval written: the answers so far.")
