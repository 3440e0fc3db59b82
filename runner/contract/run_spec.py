"""What a runner receives: its boot configuration, the answer to its claim, the specification of its run, its problems."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import Field

from runner.contract.commands import CommandTask
from runner.contract.evals import EvalTask
from runner.contract.harness import HarnessTask
from runner.contract.message import Message
from runner.contract.rules.grading import GradingRules

CONTRACT_VERSION = 1
CALL_KEY_HEADER = "x-benchyard-call"
"""Identifies a model call within its run. For the same key and body the gateway returns the stored answer."""
_KEY_SAFE = "/!#$&'()*+,:;=?@[]^`{|}<>\""


def call_key(benchmark: str, problem_id: str, sample_index: int, turn: int = 0) -> str:
    """Returns the key of an item's model call. It is sent in a header, so anything but plain ASCII is escaped."""
    return quote(f"{benchmark}/{problem_id}/{sample_index}/{turn}", safe=_KEY_SAFE)


JUDGE_TURN = "judge-"


def judge_key(benchmark: str, problem_id: str, sample_index: int, number: int) -> str:
    """Returns the key of a call that asks the judge about an item's answer; `number` counts from 0."""
    return f"{call_key(benchmark, problem_id, sample_index).removesuffix('/0')}/{JUDGE_TURN}{number}"


class ErrorScope(StrEnum):
    """Which calls an error of a model call affects; the gateway sends it with the error, in `details.scope`."""

    RUN = "run"  #: every call of the run would fail: unknown model, or a refused key, parameter or certificate
    ITEM = "item"  #: this call only: its context is too long, or a filter refused it
    UNKNOWN = "unknown"  #: the error does not say


class StandReady(Message):
    """What a warm runner needs to open its sandbox before it has a run."""

    sandbox_slots: int = Field(ge=1)
    sandbox_uid_base: int


class BootConfig(Message):
    """One line of JSON on the runner's standard input: everything that a new container knows."""

    orchestrator_url: str
    token: str
    instance_type: str
    engine: str
    stand_ready: StandReady | None = None
    """Set for a warm runner: it opens everything, then claims until it gets a run."""


class IdleReading(Message):
    """What a warm runner has used so far, by the kernel's counters."""

    cpu_s: float = Field(ge=0, allow_inf_nan=False)
    memory_bytes: int = Field(ge=0)


class ClaimRequest(Message):
    runner_id: str
    contract_version: int
    instance_type: str
    engine: str
    idle: IdleReading | None = None
    """Sent by warm runners."""


class Protocol(StrEnum):
    """The wire protocol of a model, which also decides the SDK."""

    ANTHROPIC = "anthropic"  #: Anthropic messages
    OPENAI_CHAT = "openai_chat"  #: OpenAI chat completions
    OPENAI_RESPONSES = "openai_responses"  #: OpenAI responses


THINKING_FIELD = "benchyard_thinking"
"""A field of chat requests that switches thinking; the gateway writes it as the kind of server has it."""


class ModelSpec(Message):
    slug: str
    provider: str
    name: str
    protocol: Protocol
    max_tokens: int = Field(default=8192, gt=0)
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: list[str] = []
    system_prompt: str = ""
    """Stands before the system prompt of a benchmark."""
    thinking_budget: int | None = None
    effort: str | None = None
    thinking: bool | None = None
    """Whether the model shall think before it answers; None: as the server has it."""
    chat_template_kwargs: dict[str, Any] = {}
    """Arguments of the chat template, for servers that render one (vLLM, SGLang, llama.cpp)."""
    extra_body: dict[str, Any] = {}
    """More fields of the request, as the server documents them."""
    request_timeout_s: float = 600.0


class ExecutionLimits(Message):
    """Limits for one test of one program."""

    cpu_s: float = 6.0
    memory_bytes: int = 1 << 30
    output_bytes: int = 16 << 20
    slowdown: float = 1.0
    """Wall seconds per CPU second at best; above 1 if a program gets less than one core."""

    def wall_s(self, cpu_s: float) -> float:
        """Returns the wall time limit for a program that may use `cpu_s`. Verdicts always depend on CPU time."""
        return (2 * cpu_s + 2) * self.slowdown


class BenchmarkSpec(Message):
    """One benchmark of a run: the adapter that reads its records, and its problems in order."""

    name: str
    adapter: str
    pack_digest: str
    problem_ids: list[str]
    cpu_s: float | None = None
    """CPU seconds for one test, if the benchmark sets its own limit."""
    samples: list[list[int]] | None = None
    """The sample indices of each problem, in the order of `problem_ids`, if problems differ in them."""
    parity: bool = True
    """Whether answers are also judged by the official checker's rules, if that takes a second execution."""
    rules: GradingRules | None = None
    """How answers are found and judged, if a file describes the benchmark."""
    judge_model: ModelSpec | None = None
    """The model that judges the answers, if one does."""

    def items(self, samples_per_problem: int) -> Iterator[tuple[str, int]]:
        """Yields problem id and sample index of every item, in order."""
        samples = self.samples or [list(range(samples_per_problem))] * len(self.problem_ids)
        for problem_id, own in zip(self.problem_ids, samples, strict=True):
            for sample in own:
                yield problem_id, sample


class ItemKey(Message):
    benchmark: str
    problem_id: str
    sample_index: int = 0


class RunKind(StrEnum):
    """The kind of work in a run."""

    BENCHMARK = "benchmark"  #: a model is asked, its answers are judged
    GRADE = "grade"  #: stored answers are judged; no model is asked
    EVAL_GENERATE = "eval_generate"  #: a model writes an eval from labelled traces
    EVAL_EXECUTE = "eval_execute"  #: an eval judges traces; no model is asked
    COMMAND = "command"  #: a command in the user's image is run and measured; no model is asked
    HARNESS = "harness"  #: another harness in the user's image asks a model and judges its answers


GUEST_KINDS = frozenset({RunKind.COMMAND, RunKind.HARNESS})
"""Runs in containers of a user's image."""
EVAL_KINDS = frozenset({RunKind.EVAL_GENERATE, RunKind.EVAL_EXECUTE})


class RunSpec(Message):
    run_id: str
    attempt: int
    run_token: str
    kind: str = RunKind.BENCHMARK.value
    model: ModelSpec
    benchmarks: list[BenchmarkSpec]
    samples_per_problem: int = 1
    seed: int = 0
    concurrency: int = Field(default=4, ge=1)
    sandbox_slots: int = Field(default=1, ge=1)
    sandbox_uid_base: int
    sandbox_level: str = "minimal"
    """The weakest acceptable level: the runner refuses to execute anything with fewer layers."""
    limits: ExecutionLimits = ExecutionLimits()
    finished: list[ItemKey] = []
    eval: EvalTask | None = None
    command: CommandTask | None = None
    harness: HarnessTask | None = None
    gateway_url: str
    heartbeat_s: float = 10.0
    batch_s: float = 0.25
    patience_s: float = Field(default=6 * 3600.0, gt=0)
    """A runner that cannot reach the orchestrator for this long exits."""


class ClaimedRun(Message):
    action: Literal["run"] = "run"
    spec: RunSpec


class Wait(Message):
    action: Literal["wait"] = "wait"
    retry_after_s: float


ClaimAnswer = Annotated[ClaimedRun | Wait, Field(discriminator="action")]


class GivenAnswer(Message):
    """A stored answer. `code` is judged as it is; from `text` the code is extracted first."""

    sample_index: int = Field(default=0, ge=0)
    text: str | None = None
    code: str | None = None
    finish: str = "stop"
    """Why the model stopped, if known."""


class Problem(Message):
    """One line of the problems response. `record` has the format of the benchmark's adapter."""

    benchmark: str
    problem_id: str
    record: dict[str, Any]
    given: list[GivenAnswer] | None = None
    """In a run of kind `grade`: the answers to judge."""
