"""Drafts: what a run is to be before it is queued. One class for each kind of run; `queue.enqueue` stores them all.

A draft is complete: its model, problems and instance type are settled, and nothing about it depends on the clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from orchestrator.errors import Invalid
from orchestrator.runs.tables import ContainerRun
from orchestrator.runs.task import (
    BenchmarkTask,
    CommandRunTask,
    EvalExecuteTask,
    EvalGenerateTask,
    EvalTasks,
    GradeTask,
    item_count,
)

MAX_ITEMS = 100_000
RETRY = "retry"


@dataclass(frozen=True, kw_only=True)
class _Draft:
    """What runs of every kind have. `model_id` is None where no model is asked."""

    instance_type: str
    deadline_s: int
    model_id: int | None = None
    provider: str | None = None
    concurrency: int = 1
    priority: int = 0
    budget_usd: float | None = None
    seed: int = 0
    samples_per_problem: int = 1
    subset_pct: float | None = None
    reuse_answers: bool = False
    trigger_type: str = "manual"
    retry_of: str | None = None
    batch_id: str | None = None
    batch_slot: int | None = None
    user_id: int | None = None
    not_before: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class _Items(_Draft):
    """A run whose work is items of benchmarks."""

    task: BenchmarkTask | GradeTask | CommandRunTask

    @property
    def items(self) -> int:
        return item_count(self.task.benchmarks, self.samples_per_problem)

    @property
    def sample_size(self) -> int:
        return sum(len(part.problem_ids) for part in self.task.benchmarks)


@dataclass(frozen=True, kw_only=True)
class Benchmark(_Items):
    """A model is asked, and its answers are judged."""

    task: BenchmarkTask


@dataclass(frozen=True, kw_only=True)
class Grade(_Items):
    """Stored answers are judged. Whoever queues it stores them in the same transaction."""

    task: GradeTask
    concurrency: int = 8


@dataclass(frozen=True, kw_only=True)
class Command(_Items):
    """A command of a user's image is run and measured."""

    task: CommandRunTask


@dataclass(frozen=True, kw_only=True)
class EvalJob(_Draft):
    """An eval is written or executed."""

    task: EvalTasks
    sample_size: int

    @property
    def items(self) -> int:
        return 1 if isinstance(self.task, EvalGenerateTask) else len(self.task.traces)


Draft = Benchmark | Grade | Command | EvalJob

_SAME = (
    "model_id",
    "batch_id",
    "batch_slot",
    "subset_pct",
    "samples_per_problem",
    "seed",
    "instance_type",
    "provider",
    "concurrency",
    "priority",
    "budget_usd",
    "reuse_answers",
    "deadline_s",
)


def draft_again(run: ContainerRun) -> Draft:
    """The draft of a run that does an ended one again."""
    same = {name: getattr(run, name) for name in _SAME} | {"trigger_type": RETRY, "retry_of": run.id}
    match run.task:
        case BenchmarkTask() as task:
            return Benchmark(task=task, **same)
        case GradeTask() as task:
            return Grade(task=task, **same)
        case CommandRunTask() as task:
            return Command(task=task, **same)
        case EvalGenerateTask() | EvalExecuteTask() as task:
            return EvalJob(task=task, sample_size=run.sample_size, **same)


def check_size(items: int) -> None:
    if items > MAX_ITEMS:
        raise Invalid(f"the run would have {items} items, at most {MAX_ITEMS} are allowed; ask for fewer samples")
