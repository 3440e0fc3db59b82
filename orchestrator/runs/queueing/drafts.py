"""Tasks (what a run does) and drafts (a run before it is queued): one class of each per kind of run.

A task is the column `task` of the run's row. It is validated whenever it is read and fixed when the run is queued, so every
attempt does the same work. A draft is complete: its model, problems and instance type are decided, and nothing in it depends
on the clock. `queue.enqueue` stores drafts of every kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from orchestrator.errors import Invalid
from orchestrator.runs.labels.labels import NO_LABELS, Labels
from runner.contract.commands import CommandTask
from runner.contract.evals import Label
from runner.contract.harness import HarnessTask
from runner.contract.message import Message
from runner.contract.run_spec import BenchmarkSpec, ModelSpec

if TYPE_CHECKING:  # a run's row has a task
    from orchestrator.runs.tables import ContainerRun


class Choice(Message):
    """How the problems of a benchmark were chosen, and the dates they span. For people; runners do not need it."""

    count: int
    first_date: str | None = None
    last_date: str | None = None
    selection: dict[str, Any] = Field(default_factory=dict)
    flagged_excluded: int | None = None


class PlannedBenchmark(BenchmarkSpec):
    """One benchmark of a run, with its problems."""

    choice: Choice | None = None
    judge_model_id: int | None = None
    """The model that judges the answers, if one does; fixed when the run is queued."""

    def spec(self, judge: ModelSpec | None = None) -> BenchmarkSpec:
        """The part that runners receive."""
        fields = {name: getattr(self, name) for name in BenchmarkSpec.model_fields}
        return BenchmarkSpec.model_construct(**{**fields, "judge_model": judge})

    @property
    def judge_samples(self) -> int:
        """How often the judge is asked about one answer."""
        return self.rules.judge.grader.samples if self.rules and self.rules.judge.grader else 0


class BenchmarkTask(Message):
    """Ask a model and judge its answers."""

    kind: Literal["benchmark"] = "benchmark"
    benchmarks: list[PlannedBenchmark]
    params: dict[str, Any] = Field(default_factory=dict)
    """How this run asks its model, where that differs from the model's own parameters."""


class LabelledItem(Message):
    """What a person says about a stored answer."""

    problem_id: str
    sample_index: int
    right: bool


class GradeTask(Message):
    """Judge stored answers, which are in the table `given_answers`."""

    kind: Literal["grade"] = "grade"
    benchmarks: list[PlannedBenchmark]
    labelled: list[LabelledItem] = Field(default_factory=list)
    """Set if the run measures how far the judge agrees with people."""


class CommandRunTask(Message):
    """Run a command and measure it. Its only benchmark holds the repeats."""

    kind: Literal["command"] = "command"
    command: CommandTask
    benchmarks: list[PlannedBenchmark]


class HarnessRunTask(Message):
    """Have another harness ask a model. Its only benchmark has no problems: the harness decides what it asks."""

    kind: Literal["harness"] = "harness"
    harness: HarnessTask
    benchmarks: list[PlannedBenchmark]


class EvalGenerateTask(Message):
    """Have an eval written from labelled traces, or test code that a person wrote (`draft`) on them."""

    kind: Literal["eval_generate"] = "eval_generate"
    name: str
    description: str = ""
    criterion: str = ""
    seed: int = 0
    target: float = 0.95
    draft: str | None = None
    examples: list[tuple[int, Label, bool]]
    """Number of the trace, its label, and whether it is held out."""
    disputed: dict[str, str] = Field(default_factory=dict)
    probes: list[int] = Field(default_factory=list)

    @property
    def benchmarks(self) -> list[PlannedBenchmark]:
        return []

    @property
    def traces(self) -> list[int]:
        return [number for number, _, _ in self.examples] + self.probes


class EvalExecuteTask(Message):
    """Have an eval judge these traces."""

    kind: Literal["eval_execute"] = "eval_execute"
    traces: list[int]

    @property
    def benchmarks(self) -> list[PlannedBenchmark]:
        return []


EvalTasks = EvalGenerateTask | EvalExecuteTask
Task = Annotated[
    BenchmarkTask | GradeTask | CommandRunTask | HarnessRunTask | EvalGenerateTask | EvalExecuteTask,
    Field(discriminator="kind"),
]
TASK: TypeAdapter[Task] = TypeAdapter(Task)


def run_params(task: Task) -> dict[str, Any]:
    """The parameters that a run gives its model; empty for runs that give none."""
    return task.params if isinstance(task, BenchmarkTask) else {}


def item_count(benchmarks: Iterable[BenchmarkSpec], samples_per_problem: int) -> int:
    return sum(
        sum(map(len, part.samples)) if part.samples else len(part.problem_ids) * samples_per_problem for part in benchmarks
    )


def plan_rows(task: Task) -> list[dict[str, Any]]:
    """The benchmarks of a task in the form that archives use: one flat object each."""
    program = {"command": task.command.model_dump(mode="json")} if isinstance(task, CommandRunTask) else {}
    if params := run_params(task):
        program = {"params": params}
    if isinstance(task, HarnessRunTask):
        program = {"harness": task.harness.model_dump(mode="json")}
    return [
        {
            **program,
            **(part.choice.model_dump() if part.choice else {}),
            **part.model_dump(exclude={"choice"}, exclude_unset=True),
        }
        for part in task.benchmarks
    ]


MAX_ITEMS = 100_000
RETRY = "retry"
IMPORT = "import"
"""Triggers that decide what a run counts for."""


@dataclass(frozen=True, kw_only=True)
class _Draft:
    """Fields common to all kinds of run. `model_id` is None if the run calls no model."""

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
    batch: bool = False
    trigger_type: str = "manual"
    retry_of: str | None = None
    batch_id: str | None = None
    batch_slot: int | None = None
    user_id: int | None = None
    not_before: datetime | None = None
    labels: Labels = NO_LABELS


@dataclass(frozen=True, kw_only=True)
class _Items(_Draft):
    """A run that works through the items of benchmarks."""

    task: BenchmarkTask | GradeTask | CommandRunTask | HarnessRunTask

    @property
    def items(self) -> int:
        return item_count(self.task.benchmarks, self.samples_per_problem)

    @property
    def sample_size(self) -> int:
        return sum(len(part.problem_ids) for part in self.task.benchmarks)


@dataclass(frozen=True, kw_only=True)
class Benchmark(_Items):
    """Ask a model and judge its answers."""

    task: BenchmarkTask


@dataclass(frozen=True, kw_only=True)
class Grade(_Items):
    """Judge stored answers. The caller stores the answers in the transaction that queues the run."""

    task: GradeTask
    concurrency: int = 8


@dataclass(frozen=True, kw_only=True)
class Command(_Items):
    """Run a command in a user's image and measure it."""

    task: CommandRunTask


@dataclass(frozen=True, kw_only=True)
class Harness(_Items):
    """Have another harness ask a model. How many items there will be is not known."""

    task: HarnessRunTask


@dataclass(frozen=True, kw_only=True)
class EvalJob(_Draft):
    """Write or execute an eval."""

    task: EvalTasks
    sample_size: int

    @property
    def items(self) -> int:
        return 1 if isinstance(self.task, EvalGenerateTask) else len(self.task.traces)


Draft = Benchmark | Grade | Command | Harness | EvalJob

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
    "batch",
    "deadline_s",
)


def draft_again(run: ContainerRun) -> Draft:
    """A draft that repeats an ended run."""
    same = {name: getattr(run, name) for name in _SAME}
    same |= {"trigger_type": RETRY, "retry_of": run.id, "labels": Labels(run.name, tuple(run.tags), run.note)}
    match run.task:
        case BenchmarkTask() as task:
            return Benchmark(task=task, **same)
        case GradeTask() as task:
            return Grade(task=task, **same)
        case CommandRunTask() as task:
            return Command(task=task, **same)
        case HarnessRunTask() as task:
            return Harness(task=task, **same)
        case EvalGenerateTask() | EvalExecuteTask() as task:
            return EvalJob(task=task, sample_size=run.sample_size, **same)


def check_size(items: int) -> None:
    if items > MAX_ITEMS:
        raise Invalid(f"the run would have {items} items, at most {MAX_ITEMS} are allowed; ask for fewer samples")
