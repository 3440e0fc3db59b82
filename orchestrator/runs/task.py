"""What a run is to do: the column `task` of its row, checked whenever it is read.

One class for each kind of run. A task is fixed when the run is queued, so every attempt does the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from runner.contract.commands import CommandTask
from runner.contract.evals import Label
from runner.contract.message import Message
from runner.contract.run_spec import BenchmarkSpec


class Choice(Message):
    """How the problems of a benchmark were chosen, and from which time they are. For people; runners do not need it."""

    count: int
    first_date: str | None = None
    last_date: str | None = None
    selection: dict[str, Any] = Field(default_factory=dict)
    flagged_excluded: int | None = None


class PlannedBenchmark(BenchmarkSpec):
    """One benchmark of a run with its problems."""

    choice: Choice | None = None

    def spec(self) -> BenchmarkSpec:
        """As runners have it."""
        return BenchmarkSpec.model_construct(**{name: getattr(self, name) for name in BenchmarkSpec.model_fields})


class BenchmarkTask(Message):
    """A model is asked, and its answers are judged."""

    kind: Literal["benchmark"] = "benchmark"
    benchmarks: list[PlannedBenchmark]


class GradeTask(Message):
    """Stored answers are judged; `given_answers` holds them."""

    kind: Literal["grade"] = "grade"
    benchmarks: list[PlannedBenchmark]


class CommandRunTask(Message):
    """A command is run and measured; the one benchmark holds its repeats."""

    kind: Literal["command"] = "command"
    command: CommandTask
    benchmarks: list[PlannedBenchmark]


class EvalGenerateTask(Message):
    """An eval is written from labelled traces, or code that a person wrote (`draft`) is tested on them."""

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
    """An eval judges these traces."""

    kind: Literal["eval_execute"] = "eval_execute"
    traces: list[int]

    @property
    def benchmarks(self) -> list[PlannedBenchmark]:
        return []


EvalTasks = EvalGenerateTask | EvalExecuteTask
Task = Annotated[
    BenchmarkTask | GradeTask | CommandRunTask | EvalGenerateTask | EvalExecuteTask, Field(discriminator="kind")
]
TASK: TypeAdapter[Task] = TypeAdapter(Task)


def item_count(benchmarks: Iterable[BenchmarkSpec], samples_per_problem: int) -> int:
    return sum(
        sum(map(len, part.samples)) if part.samples else len(part.problem_ids) * samples_per_problem for part in benchmarks
    )


def plan_rows(task: Task) -> list[dict[str, Any]]:
    """The benchmarks of a task as archives hold them: one flat object each."""
    command = {"command": task.command.model_dump(mode="json")} if isinstance(task, CommandRunTask) else {}
    return [
        {
            **command,
            **(part.choice.model_dump() if part.choice else {}),
            **part.model_dump(exclude={"choice"}, exclude_unset=True),
        }
        for part in task.benchmarks
    ]
