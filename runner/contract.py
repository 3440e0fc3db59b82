"""The contract between runner and orchestrator: every body that crosses the wire between them, and nothing else.

A leaf: pydantic and the standard library only. With its part about evals it is all of `runner` that `orchestrator`
imports. Both sides ignore fields they do not know, so that either can be upgraded first; a version that does not match is
refused at claim.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import Field, TypeAdapter

from runner.contract_commands import CommandTask, RepeatFacts
from runner.contract_evals import EvalTask, EvalWrittenEvent, JobProgressEvent, JudgementsEvent, TraceLine
from runner.message import Count, Message, Seconds

CONTRACT_VERSION = 1

CALL_KEY_HEADER = "x-benchyard-call"
"""Names a model call within its run; the gateway answers the same key and body with the stored answer."""


_KEY_SAFE = "/!#$&'()*+,:;=?@[]^`{|}<>\""


def call_key(benchmark: str, problem_id: str, sample_index: int, turn: int = 0) -> str:
    """The key of an item's model call. It travels in a header, so what is not plain ASCII is escaped."""
    return quote(f"{benchmark}/{problem_id}/{sample_index}/{turn}", safe=_KEY_SAFE)


class ErrorScope(StrEnum):
    """Whom the error of a model call concerns; the gateway says it with the error, in `details.scope`."""

    RUN = "run"  #: every call of the run would meet it: model unknown, key, parameter or certificate refused
    ITEM = "item"  #: this one question only: its context is too long, a filter refused it
    UNKNOWN = "unknown"  #: the error does not say


class Outcome(StrEnum):
    """How an item ended; exactly one each."""

    PASSED = "passed"  #: every test accepted
    WRONG_ANSWER = "wrong_answer"  #: the program ran and answered something else
    TIME_LIMIT = "time_limit"  #: more CPU or wall time than the limit
    MEMORY_LIMIT = "memory_limit"  #: more memory than the limit
    OUTPUT_LIMIT = "output_limit"  #: more output than the limit
    RUNTIME_ERROR = "runtime_error"  #: the program crashed or ended with an error
    NO_ANSWER = "no_answer"  #: nothing that could be extracted from the model's text
    TRUNCATED = "truncated"  #: the model hit its token limit before it finished
    REFUSED = "refused"  #: the model declined to answer
    PROVIDER_ERROR = "provider_error"  #: the provider did not answer, after retries; not the model's fault
    INFRA_ERROR = "infra_error"  #: our own machinery failed, after retries; not the model's fault


NOT_THE_MODELS_FAULT = frozenset({Outcome.PROVIDER_ERROR, Outcome.INFRA_ERROR})


class Stage(StrEnum):
    """Where a running attempt is."""

    BOOT = "boot"  #: the runner started and claimed its run
    PROVISION = "provision"  #: problems are fetched, the sandbox comes up
    RUNNING = "running"  #: items are worked on
    UPLOADING = "uploading"  #: all items are done, the last results are on their way
    FINISHED = "finished"  #: everything is acknowledged


class FailureReason(StrEnum):
    """What a runner may say when it gives up a whole run."""

    DATASET_ERROR = "dataset_error"  #: a problem could not be fetched or understood
    PROVIDER_ERROR = "provider_error"  #: the provider refuses every call, for example for a wrong key
    BUDGET_EXHAUSTED = "budget_exhausted"  #: the run's budget, or a limit for the day, does not allow another call
    PRICE_UNKNOWN = "price_unknown"  #: a budget or limit applies, and the model has no price
    EVAL_REFUSED = "eval_refused"  #: the eval that the model wrote is not fit to be used
    EVAL_FAILING = "eval_failing"  #: an eval that is executed gives no verdict on too many traces
    RUNNER_ERROR = "runner_error"  #: an error of the runner itself


class Desired(StrEnum):
    """What the orchestrator wants of a runner."""

    RUN = "run"
    CANCEL = "cancel"


class StandReady(Message):
    """What a runner needs to open its sandbox before it knows its run."""

    sandbox_slots: int = Field(ge=1)
    sandbox_uid_base: int


class BootConfig(Message):
    """One line of JSON on the runner's standard input: all that a fresh container knows."""

    orchestrator_url: str
    token: str
    instance_type: str
    engine: str
    stand_ready: StandReady | None = None
    """Set for a runner that is started ahead of its run: it opens everything, then claims until it is given one."""


class IdleReading(Message):
    """What a runner that stands ready has used so far, by the kernel's figures."""

    cpu_s: float = Field(ge=0, allow_inf_nan=False)
    memory_bytes: int = Field(ge=0)


class ClaimRequest(Message):
    runner_id: str
    contract_version: int
    instance_type: str
    engine: str
    idle: IdleReading | None = None
    """Of a runner that stands ready."""


class Protocol(StrEnum):
    """The wire protocol, and with it the SDK, that a model is asked through."""

    ANTHROPIC = "anthropic"  #: Anthropic messages
    OPENAI_CHAT = "openai_chat"  #: OpenAI chat completions
    OPENAI_RESPONSES = "openai_responses"  #: OpenAI responses


class ModelSpec(Message):
    slug: str
    provider: str
    name: str
    protocol: Protocol
    max_tokens: int = Field(default=8192, gt=0)
    temperature: float | None = None
    top_p: float | None = None
    thinking_budget: int | None = None
    effort: str | None = None
    request_timeout_s: float = 600.0


class ExecutionLimits(Message):
    """Limits for one test of one program."""

    cpu_s: float = 6.0
    memory_bytes: int = 1 << 30
    output_bytes: int = 16 << 20
    slowdown: float = 1.0
    """How many seconds of the clock a second of CPU takes here at the best; more than 1 on a share of a core."""

    def wall_s(self, cpu_s: float) -> float:
        """The outer fence for a program that may use `cpu_s`: verdicts go by CPU time, on every instance type."""
        return (2 * cpu_s + 2) * self.slowdown


class BenchmarkSpec(Message):
    """One benchmark of a run: which adapter reads its records, and which problems in which order."""

    name: str
    adapter: str
    pack_digest: str
    problem_ids: list[str]
    cpu_s: float | None = None
    """CPU seconds for one test, where the benchmark has a rule of its own."""
    samples: list[list[int]] | None = None
    """The samples of each problem, in the order of `problem_ids`, where they are not the same for all."""
    parity: bool = True
    """Whether answers are also judged by the official checker's rules, where that takes a second execution."""

    def items(self, samples_per_problem: int) -> Iterator[tuple[str, int]]:
        """Problem and sample of every item, in order."""
        samples = self.samples or [list(range(samples_per_problem))] * len(self.problem_ids)
        for problem_id, own in zip(self.problem_ids, samples, strict=True):
            for sample in own:
                yield problem_id, sample


class ItemKey(Message):
    benchmark: str
    problem_id: str
    sample_index: int = 0


class RunKind(StrEnum):
    """What a run is for."""

    BENCHMARK = "benchmark"  #: a model is asked, its answers are judged
    GRADE = "grade"  #: answers that are there already are judged; no model is asked
    EVAL_GENERATE = "eval_generate"  #: a model writes an eval from labelled traces
    EVAL_EXECUTE = "eval_execute"  #: an eval judges traces; no model is asked
    COMMAND = "command"  #: a command of the user's image is run and measured; no model is asked


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
    """The weakest that will do: the runner refuses to execute anything with fewer layers."""
    limits: ExecutionLimits = ExecutionLimits()
    finished: list[ItemKey] = []
    eval: EvalTask | None = None
    command: CommandTask | None = None
    gateway_url: str
    heartbeat_s: float = 10.0
    batch_s: float = 0.25
    patience_s: float = Field(default=6 * 3600.0, gt=0)
    """A runner that has not reached the orchestrator for so long ends."""


class ClaimedRun(Message):
    action: Literal["run"] = "run"
    spec: RunSpec


class Wait(Message):
    action: Literal["wait"] = "wait"
    retry_after_s: float


ClaimAnswer = Annotated[ClaimedRun | Wait, Field(discriminator="action")]


class GivenAnswer(Message):
    """An answer that is there already. `code` is judged as it is; from `text` it is extracted first."""

    sample_index: int = Field(default=0, ge=0)
    text: str | None = None
    code: str | None = None
    finish: str = "stop"
    """Why the model stopped, where that is known."""


class Problem(Message):
    """One line of the problems answer. `record` is in the format of the benchmark's adapter."""

    benchmark: str
    problem_id: str
    record: dict[str, Any]
    given: list[GivenAnswer] | None = None
    """In a run of kind `grade`: the answers to judge."""


class Usage(Message):
    """What the kernel measured."""

    cpu_s: Seconds = 0.0
    wall_s: Seconds = 0.0
    peak_bytes: Count = 0


class TestResult(Message):
    """One test of an item. Texts are excerpts."""

    index: Count
    outcome: Outcome
    usage: Usage = Usage()
    input: str | None = None
    expected: str | None = None
    got: str | None = None
    stderr: str | None = None


class CallFacts(Message):
    """What is known of the model call behind an item."""

    call_key: str
    input_tokens: Count = 0
    output_tokens: Count = 0
    reasoning_tokens: Count = 0
    cached_tokens: Count = 0
    latency_s: Seconds = 0.0
    finish_reason: str = ""
    replayed: bool = False


class ItemResult(Message):
    benchmark: str
    problem_id: str
    sample_index: int = 0
    outcome: Outcome
    parity_outcome: Outcome | None = None
    detail: str = ""
    prompt: str = ""
    prompt_version: str = ""
    answer: str = ""
    code: str | None = None
    extraction_rule: str = ""
    tests_total: Count = 0
    tests_passed: Count = 0
    tests: list[TestResult] = []
    usage: Usage = Usage()
    exit: str = ""
    fragile: bool = False
    calls: list[CallFacts] = []
    repeat: RepeatFacts | None = None
    """In a run of kind `command`."""

    @property
    def key(self) -> ItemKey:
        return ItemKey(benchmark=self.benchmark, problem_id=self.problem_id, sample_index=self.sample_index)


class StageEvent(Message):
    type: Literal["stage"] = "stage"
    seq: int = Field(ge=1)
    stage: Stage
    facts: dict[str, Any] = {}


class HeartbeatEvent(Message):
    type: Literal["heartbeat"] = "heartbeat"
    seq: int = Field(ge=1)
    waiting_for: str | None = None


class ProgressEvent(Message):
    type: Literal["progress"] = "progress"
    seq: int = Field(ge=1)
    item: ItemResult


class LogEvent(Message):
    type: Literal["log"] = "log"
    seq: int = Field(ge=1)
    level: Literal["debug", "info", "warning", "error"] = "info"
    message: str


class CompleteEvent(Message):
    """The last event of a run whose items are all reported."""

    type: Literal["complete"] = "complete"
    seq: int = Field(ge=1)


class FailedEvent(Message):
    type: Literal["failed"] = "failed"
    seq: int = Field(ge=1)
    reason: FailureReason
    message: str
    code: str | None = None
    """The error code that a job about evals ends with."""


RunnerEvent = Annotated[
    StageEvent
    | HeartbeatEvent
    | ProgressEvent
    | LogEvent
    | JobProgressEvent
    | EvalWrittenEvent
    | JudgementsEvent
    | CompleteEvent
    | FailedEvent,
    Field(discriminator="type"),
]


class UsageSample(Message):
    """What the attempt has used so far, by the kernel's counters; `at_s` counts from the claim."""

    at_s: float = Field(ge=0, le=1e9, allow_inf_nan=False)
    cpu_s: float = Field(ge=0, le=1e12, allow_inf_nan=False)
    memory_bytes: int = Field(ge=0, le=1 << 60)
    """Without what the kernel could give back at once."""
    throttled_s: float | None = Field(default=None, ge=0, le=1e12, allow_inf_nan=False)
    """How long it was made to wait because its share of the cores was used up; None where the kernel does not say."""


class EventBatch(Message):
    """Consecutive events, lowest number first. What was already stored is ignored, what follows a gap is not taken.

    `usage` rides along: the samples since the last batch that was acknowledged.
    """

    attempt: int = Field(ge=1)
    events: list[RunnerEvent] = Field(max_length=1000)
    usage: list[UsageSample] = Field(default=[], max_length=500)


class EventAck(Message):
    ack_seq: int
    desired: Desired


def schema() -> dict[str, Any]:
    """The JSON Schema of every body, for `docs/contract.schema.json`."""
    bodies: list[tuple[str, Any]] = [
        ("BootConfig", BootConfig),
        ("ClaimRequest", ClaimRequest),
        ("ClaimAnswer", ClaimAnswer),
        ("Problem", Problem),
        ("TraceLine", TraceLine),
        ("EventBatch", EventBatch),
        ("EventAck", EventAck),
    ]
    _, merged = TypeAdapter.json_schemas(
        [(name, "validation", TypeAdapter(body)) for name, body in bodies],
        title=f"Benchyard runner contract, version {CONTRACT_VERSION}",
    )
    return merged


def schema_text() -> str:
    return json.dumps(schema(), indent=2, sort_keys=True) + "\n"
