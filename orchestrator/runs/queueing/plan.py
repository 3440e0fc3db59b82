"""The ordered items of a run, the model calls that they allow, and the specification sent to its runner."""

from __future__ import annotations

import hashlib
import math
import re
import threading
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any
from urllib.parse import unquote

from sqlmodel import Session

from orchestrator.datasets.packs.pack import Entry
from orchestrator.datasets.packs.selection import Selection
from orchestrator.engines.engine import InstanceType
from orchestrator.models.tables import LlmModel
from orchestrator.runs import queries as run_queries
from orchestrator.runs.queueing.drafts import Choice, CommandRunTask, HarnessRunTask, Task, run_params
from orchestrator.runs.queueing.model_specs import model_spec_of
from orchestrator.runs.reports.model_names import STORED_ANSWERS
from orchestrator.runs.tables import Attempt, ContainerRun
from runner.contract.commands import CommandTask
from runner.contract.evals import EvalLimits, EvalTask, generation_key
from runner.contract.harness import HarnessTask
from runner.contract.run_spec import (
    JUDGE_TURN,
    BenchmarkSpec,
    ExecutionLimits,
    ItemKey,
    ModelSpec,
    Protocol,
    RunKind,
    RunSpec,
    call_key,
)

MIB = 1 << 20
RUNNER_MEMORY = 192 * MIB
CHILD_OVERHEAD = 40 * MIB
CPU_LIMITS_S = {"sample": 2.0}
"""CPU limits per test that differ from the usual 6 s. The bundled problems need far less, and a demo should be quick."""
UID_FIRST = 20_000
UID_STEP = 64
UID_RANGES = 600


class Planned(typing.Protocol):
    """What a plan is made of: a run's row, or these columns of it."""

    @property
    def task(self) -> Task: ...

    @property
    def samples_per_problem(self) -> int: ...


def item_keys(run: Planned) -> Iterator[tuple[str, str, int]]:
    """(benchmark, problem, sample) of every item. The order defines an item's position."""
    for part in run.task.benchmarks:
        for problem_id, sample in part.items(run.samples_per_problem):
            yield part.name, problem_id, sample


def item_positions(run: Planned) -> dict[tuple[str, str, int], int]:
    return {key: position for position, key in enumerate(item_keys(run))}


def choice_of(entries: Sequence[Entry], problem_ids: Sequence[str], selection: Selection, flagged: int | None) -> Choice:
    """How the problems were chosen, and the dates they span."""
    ids = set(problem_ids)
    days = sorted(entry.date for entry in entries if entry.date and entry.id in ids)
    criteria = {
        key: value.isoformat() if isinstance(value, date) else value
        for key, value in asdict(selection).items()
        if key not in ("ids", "exclude_flagged") and value is not None
    }
    return Choice(
        count=len(problem_ids),
        first_date=days[0] if days else None,
        last_date=days[-1] if days else None,
        selection={**criteria, "exclude_flagged": selection.exclude_flagged, "ids": selection.ids is not None},
        flagged_excluded=flagged,
    )


def command_of(run: ContainerRun) -> CommandTask | None:
    """The command of a run of kind `command`, else None. Tasks of other kinds are not loaded, since they may be large."""
    if run.kind != RunKind.COMMAND:
        return None
    assert isinstance(run.task, CommandRunTask)
    return run.task.command


def harness_of(run: ContainerRun) -> HarnessTask | None:
    """The harness of a run of kind `harness`, else None. Tasks of other kinds are not loaded."""
    if run.kind != RunKind.HARNESS:
        return None
    assert isinstance(run.task, HarnessRunTask)
    return run.task.harness


def guest_image(run: ContainerRun) -> str | None:
    """The user's image, if the run's container does not use the runner image."""
    task = command_of(run) or harness_of(run)
    return None if task is None else task.image


def sandbox_slots(instance_type: InstanceType) -> int:
    """How many programs run at once: one per core of the instance type."""
    return max(1, math.floor(instance_type.vcpu))


def execution_limits(instance_type: InstanceType) -> ExecutionLimits:
    """Limits of one test, chosen so that all slots together fit into the container beside the runner."""
    slots = sandbox_slots(instance_type)
    room = (instance_type.memory_bytes - RUNNER_MEMORY) // slots - CHILD_OVERHEAD
    return ExecutionLimits(memory_bytes=max(32 * MIB, min(1024 * MIB, room)), slowdown=max(1.0, slots / instance_type.vcpu))


def uid_shift(owner: str) -> int:
    """Where an installation starts to look for free uid ranges, so that two on one machine rarely use the same."""
    return int.from_bytes(hashlib.sha256(owner.encode()).digest()[:4], "big") % UID_RANGES


def free_uid_base(used: set[int], shift: int = 0) -> int:
    """The first range of sandbox uids that no live attempt uses. Process limits count per uid across the whole kernel."""
    for index in range(UID_RANGES):
        base = UID_FIRST + (index + shift) % UID_RANGES * UID_STEP
        if base not in used:
            return base
    raise RuntimeError("every range of sandbox uids is in use")


def model_spec(kind: str, model: LlmModel | None, of_run: Mapping[str, Any] | None = None) -> ModelSpec:
    """The model for the runner. A run without a model gets a placeholder, since runners of every version expect one."""
    if model is None:
        name = "no-model" if kind == RunKind.COMMAND else STORED_ANSWERS
        return ModelSpec(slug=name, provider="stored", name=name, protocol=Protocol.OPENAI_CHAT)
    return model_spec_of(model, of_run)


def least_sandbox_level(engine: str) -> str:
    """The sandbox level that a runner must reach by default. Local processes may lack layers that containers have."""
    return "full" if engine in ("docker", "kubernetes") else "minimal"


def run_spec(
    run: ContainerRun,
    attempt: Attempt,
    model: LlmModel | None,
    *,
    instance_type: InstanceType,
    token: str,
    gateway_url: str,
    finished: list[tuple[str, str, int]],
    heartbeat_s: float,
    patience_s: float,
    sandbox_level: str | None = None,
    task: EvalTask | None = None,
    judges: Mapping[int, LlmModel] | None = None,
) -> RunSpec:
    """`judges` are the models that judge answers, by id."""
    limits = execution_limits(instance_type)
    by_id = {model_id: model_spec_of(judge) for model_id, judge in (judges or {}).items()}
    if task is not None:
        task = task.model_copy(update={"limits": EvalLimits(slowdown=limits.slowdown)})
    return RunSpec(
        run_id=run.id,
        attempt=attempt.number,
        run_token=token,
        kind=run.kind,
        model=model_spec(run.kind, model, run_params(run.task)),
        benchmarks=[part.spec(by_id.get(part.judge_model_id or 0)) for part in run.task.benchmarks],
        samples_per_problem=run.samples_per_problem,
        seed=run.seed,
        concurrency=run.concurrency,
        sandbox_slots=sandbox_slots(instance_type),
        sandbox_uid_base=attempt.sandbox_uid_base,
        sandbox_level=sandbox_level or least_sandbox_level(attempt.engine),
        limits=limits,
        eval=task,
        command=command_of(run),
        harness=harness_of(run),
        finished=[ItemKey(benchmark=b, problem_id=p, sample_index=i) for b, p, i in finished],
        gateway_url=gateway_url,
        heartbeat_s=heartbeat_s,
        patience_s=patience_s,
    )


Positions = dict[tuple[str, str, int], int]

TURNS_OF_ADAPTERS = {"livecodebench_self_repair": 2}
_HARNESS_KEY = re.compile(r"harness/[0-9a-f]{64}/(0|[1-9][0-9]{0,6})/0")
"""The digest of a question, and how often it was asked before."""
GENERATION_KEYS = frozenset(generation_key(turn) for turn in range(EvalTask().repairs + 1))


@dataclass(frozen=True)
class Plan:
    """The items of a run with their positions, the model that judges each benchmark that one judges, and how many calls an
    item may make."""

    positions: Positions = field(default_factory=dict)
    judges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Benchmark -> id of the judge, and how often it is asked about an answer."""
    turns: Mapping[str, int] = field(default_factory=dict)
    """Benchmark -> most calls per item, where it is more than one."""

    def asks(self, key: str) -> bool:
        """Whether the run's model may be asked under this key."""
        head, _, turn = key.rpartition("/")
        if not (turn.isascii() and turn.isdecimal() and len(turn) < 4 and turn == str(int(turn))):
            return False
        item = _item_of(f"{head}/0")
        return item is not None and item in self.positions and int(turn) < self.turns.get(item[0], 1)

    def judge_of(self, key: str) -> int | None:
        """The id of the judge that a planned call with this key asks; None for any other key."""
        item, _, tail = key.rpartition("/")
        number = tail.removeprefix(JUDGE_TURN)
        if tail == number or len(number) != 1 or not (number.isascii() and number.isdecimal()):
            return None
        planned = _item_of(f"{item}/0")
        model_id, samples = self.judges.get(planned[0], (None, 0)) if planned in self.positions and planned else (None, 0)
        return model_id if int(number) < samples else None


class PositionCache:
    """The plan of each run: its items and judges. Plans never change; the most recent few are cached for all threads."""

    def __init__(self, size: int = 64) -> None:
        self._size = size
        self._known: dict[str, Plan] = {}
        self._lock = threading.Lock()

    def of(self, run: ContainerRun) -> Plan:
        return self.by_id(run.id, lambda: run)

    def by_id(self, run_id: str, load: Callable[[], Planned | None]) -> Plan:
        with self._lock:
            plan = self._known.pop(run_id, None)
            if plan is None:
                run = load()
                plan = Plan() if run is None else plan_of(run)
            self._known[run_id] = plan
            while len(self._known) > self._size:
                del self._known[next(iter(self._known))]
            return plan


def plan_of(run: Planned) -> Plan:
    judges = {
        part.name: (part.judge_model_id, part.judge_samples)
        for part in run.task.benchmarks
        if part.judge_model_id is not None
    }
    turns = {part.name: most for part in run.task.benchmarks if (most := turns_of(part)) > 1}
    return Plan(item_positions(run), judges, turns)


def turns_of(part: BenchmarkSpec) -> int:
    """The most calls that an item may make to its model."""
    if part.rules is not None and part.rules.program is not None:
        return part.rules.program.turns
    return TURNS_OF_ADAPTERS.get(part.adapter, 1)


@dataclass(frozen=True)
class PlannedCalls:
    """Which calls a run may make: to its model, and to the models that judge its answers."""

    asks: Callable[[str], bool]
    judge_of: Callable[[str], int | None] = lambda key: None
    judge_ids: frozenset[int] = frozenset()


def planned_calls(positions: PositionCache, session: Session, run_id: str, kind: str) -> PlannedCalls:
    """Grading asks judges only; commands and eval execution call no model."""
    if kind == RunKind.EVAL_GENERATE:
        return PlannedCalls(GENERATION_KEYS.__contains__)
    if kind == RunKind.HARNESS:
        return PlannedCalls(lambda key: _HARNESS_KEY.fullmatch(key) is not None)
    if kind not in (RunKind.BENCHMARK, RunKind.GRADE):
        return PlannedCalls(lambda key: False)
    plan = positions.by_id(run_id, lambda: run_queries.get(session, run_id))
    asks = plan.asks if kind == RunKind.BENCHMARK else (lambda key: False)
    return PlannedCalls(asks, plan.judge_of, frozenset(model_id for model_id, _ in plan.judges.values()))


def _item_of(key: str) -> tuple[str, str, int] | None:
    """The item that a call key belongs to."""
    item, _, rest = unquote(key).partition("/")
    problem_id, *numbers = rest.rsplit("/", 2)
    if len(numbers) != 2 or not (numbers[0].isascii() and numbers[0].isdecimal() and len(numbers[0]) < 10):
        return None
    sample_index = int(numbers[0])
    return (item, problem_id, sample_index) if call_key(item, problem_id, sample_index) == key else None
