"""The plan of a run: which items it has, in which order, and what its runner is told. Pure."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from orchestrator.datasets.packs.pack import Entry
from orchestrator.datasets.packs.selection import Selection
from orchestrator.engines.engine import InstanceType
from orchestrator.models.tables import LlmModel
from orchestrator.runs.tables import Attempt, ContainerRun
from runner.contract.commands import CommandTask
from runner.contract.evals import EvalLimits, EvalTask
from runner.contract.run_spec import BenchmarkSpec, ExecutionLimits, ItemKey, ModelSpec, Protocol, RunKind, RunSpec

MIB = 1 << 20
RUNNER_MEMORY = 192 * MIB
CHILD_OVERHEAD = 40 * MIB
CPU_LIMITS_S = {"sample": 2.0}
"""Where one test may use other than the usual 6 s; the bundled problems need far less, and a demo should be quick."""
UID_FIRST = 20_000
UID_STEP = 64
UID_RANGES = 600


@dataclass(frozen=True)
class Plan:
    """The benchmarks of a run with their problems; an item's position is its place in this order."""

    benchmarks: tuple[BenchmarkSpec, ...]
    samples_per_problem: int
    notes: tuple[dict[str, Any], ...] = ()
    """What is stored with each benchmark for people, and is none of the runner's business."""

    @classmethod
    def of(cls, run: ContainerRun) -> Plan:
        return cls(tuple(BenchmarkSpec.model_validate(row) for row in run.plan), run.samples_per_problem)

    def rows(self) -> list[dict[str, Any]]:
        notes = self.notes or ({},) * len(self.benchmarks)
        return [{**note, **spec.model_dump()} for spec, note in zip(self.benchmarks, notes, strict=True)]

    @property
    def size(self) -> int:
        return sum(
            sum(map(len, benchmark.samples)) if benchmark.samples else len(benchmark.problem_ids) * self.samples_per_problem
            for benchmark in self.benchmarks
        )

    def keys(self) -> Iterator[tuple[str, str, int]]:
        """(benchmark, problem, sample) of every item, in order."""
        for benchmark in self.benchmarks:
            for problem_id, sample in benchmark.items(self.samples_per_problem):
                yield benchmark.name, problem_id, sample

    def positions(self) -> dict[tuple[str, str, int], int]:
        return {key: position for position, key in enumerate(self.keys())}


def selection_note(
    entries: Sequence[Entry], problem_ids: Sequence[str], selection: Selection, flagged: int | None
) -> dict[str, Any]:
    """How the problems were chosen, and from which time they are."""
    chosen = set(problem_ids)
    days = sorted(entry.date for entry in entries if entry.date and entry.id in chosen)
    asked = {
        key: value.isoformat() if isinstance(value, date) else value
        for key, value in asdict(selection).items()
        if key not in ("ids", "exclude_flagged") and value is not None
    }
    return {
        "count": len(problem_ids),
        "first_date": days[0] if days else None,
        "last_date": days[-1] if days else None,
        "selection": {**asked, "exclude_flagged": selection.exclude_flagged, "ids": selection.ids is not None},
        "flagged_excluded": flagged,
    }


def command_of(run: ContainerRun) -> CommandTask | None:
    """What a run of kind `command` runs: it stands in its plan, beside the repeats."""
    return CommandTask.model_validate(run.plan[0]["command"]) if run.kind == RunKind.COMMAND else None


def guest_image(run: ContainerRun) -> str | None:
    """The user's image that the run's container is of, where it is not the runner's."""
    task = command_of(run)
    return None if task is None else task.image


def sandbox_slots(instance_type: InstanceType) -> int:
    """How many programs run at once: one per core that the instance type has."""
    return max(1, math.floor(instance_type.vcpu))


def execution_limits(instance_type: InstanceType) -> ExecutionLimits:
    """Limits of one test, such that all slots together fit into the container beside the runner."""
    slots = sandbox_slots(instance_type)
    room = (instance_type.memory_bytes - RUNNER_MEMORY) // slots - CHILD_OVERHEAD
    return ExecutionLimits(memory_bytes=max(32 * MIB, min(1024 * MIB, room)), slowdown=max(1.0, slots / instance_type.vcpu))


def uid_shift(owner: str) -> int:
    """Where an installation begins to look for free ranges, so that two on one machine rarely use the same."""
    return int.from_bytes(hashlib.sha256(owner.encode()).digest()[:4], "big") % UID_RANGES


def free_uid_base(used: set[int], shift: int = 0) -> int:
    """The first range of sandbox uids that no live attempt has: process limits count per uid over a whole kernel."""
    for index in range(UID_RANGES):
        base = UID_FIRST + (index + shift) % UID_RANGES * UID_STEP
        if base not in used:
            return base
    raise RuntimeError("every range of sandbox uids is in use")


def model_spec(model: LlmModel) -> ModelSpec:
    known = {key: value for key, value in model.params.items() if key in ModelSpec.model_fields}
    return ModelSpec.model_validate(
        {
            **known,
            "slug": model.slug,
            "provider": model.provider,
            "name": model.name,
            "protocol": Protocol(model.protocol),
        }
    )


def least_sandbox_level(engine: str) -> str:
    """What a runner must reach where nothing is said: containers are made for every layer, processes get what there is."""
    return "full" if engine == "docker" else "minimal"


def run_spec(
    run: ContainerRun,
    attempt: Attempt,
    model: LlmModel,
    *,
    instance_type: InstanceType,
    token: str,
    gateway_url: str,
    finished: list[tuple[str, str, int]],
    heartbeat_s: float,
    patience_s: float,
    sandbox_level: str | None = None,
    task: EvalTask | None = None,
) -> RunSpec:
    limits = execution_limits(instance_type)
    if task is not None:
        task = task.model_copy(update={"limits": EvalLimits(slowdown=limits.slowdown)})
    return RunSpec(
        run_id=run.id,
        attempt=attempt.number,
        run_token=token,
        kind=run.kind,
        model=model_spec(model),
        benchmarks=list(Plan.of(run).benchmarks),
        samples_per_problem=run.samples_per_problem,
        seed=run.seed,
        concurrency=run.concurrency,
        sandbox_slots=sandbox_slots(instance_type),
        sandbox_uid_base=attempt.sandbox_uid_base,
        sandbox_level=sandbox_level or least_sandbox_level(attempt.engine),
        limits=limits,
        eval=task,
        command=command_of(run),
        finished=[ItemKey(benchmark=b, problem_id=p, sample_index=i) for b, p, i in finished],
        gateway_url=gateway_url,
        heartbeat_s=heartbeat_s,
        patience_s=patience_s,
    )
