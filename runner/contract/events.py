"""What a runner reports: numbered events, the results in them, and the acknowledgement."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from runner.contract.commands import RepeatFacts
from runner.contract.evals import EvalWrittenEvent, JobProgressEvent, JudgementsEvent
from runner.contract.message import Count, Message, Seconds
from runner.contract.run_spec import ItemKey


class Outcome(StrEnum):
    """How an item ended; each item has exactly one."""

    PASSED = "passed"  #: every test accepted
    WRONG_ANSWER = "wrong_answer"  #: the program ran and gave another answer
    TIME_LIMIT = "time_limit"  #: more CPU or wall time than the limit
    MEMORY_LIMIT = "memory_limit"  #: more memory than the limit
    OUTPUT_LIMIT = "output_limit"  #: more output than the limit
    RUNTIME_ERROR = "runtime_error"  #: the program crashed or ended with an error
    NO_ANSWER = "no_answer"  #: no answer could be extracted from the model's text
    TRUNCATED = "truncated"  #: the model hit its token limit before it finished
    REFUSED = "refused"  #: the model declined to answer
    PROVIDER_ERROR = "provider_error"  #: the provider did not answer, after retries; not the model's fault
    INFRA_ERROR = "infra_error"  #: our own infrastructure failed, after retries; not the model's fault


NOT_THE_MODELS_FAULT = frozenset({Outcome.PROVIDER_ERROR, Outcome.INFRA_ERROR})


class Stage(StrEnum):
    """The stage of a running attempt."""

    BOOT = "boot"  #: the runner started and claimed its run
    PROVISION = "provision"  #: problems are being fetched, the sandbox is starting
    RUNNING = "running"  #: items are being processed
    UPLOADING = "uploading"  #: all items are done, the last results are being sent
    FINISHED = "finished"  #: everything is acknowledged


class FailureReason(StrEnum):
    """The reasons a runner may give for ending a whole run."""

    DATASET_ERROR = "dataset_error"  #: a problem could not be fetched or parsed
    PROVIDER_ERROR = "provider_error"  #: the provider refuses every call, for example because of a wrong key
    BUDGET_EXHAUSTED = "budget_exhausted"  #: the run's budget or a daily limit does not allow another call
    PRICE_UNKNOWN = "price_unknown"  #: a budget or limit applies, and the model has no price
    HARNESS_FAILED = "harness_failed"  #: a harness crashed, or left no results that can be read
    EVAL_REFUSED = "eval_refused"  #: the eval that the model wrote is unusable
    EVAL_FAILING = "eval_failing"  #: an eval gives no verdict on too many traces
    RUNNER_ERROR = "runner_error"  #: an error in the runner itself


class Desired(StrEnum):
    """What the orchestrator wants a runner to do."""

    RUN = "run"
    CANCEL = "cancel"


class Usage(Message):
    """Usage measured by the kernel."""

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
    """Facts about the model call behind an item."""

    call_key: str
    input_tokens: Count = 0
    output_tokens: Count = 0
    reasoning_tokens: Count = 0
    cached_tokens: Count = 0
    latency_s: Seconds = 0.0
    finish_reason: str = ""
    replayed: bool = False


class Judgement(CallFacts):
    """A call that asked the judge about an answer: its text, and what it makes the answer worth."""

    model: str = ""
    text: str = ""
    worth: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    """None if the verdict cannot be read."""
    trouble: str = ""


class ItemResult(Message):
    benchmark: str
    problem_id: str
    sample_index: int = 0
    outcome: Outcome
    parity_outcome: Outcome | None = None
    score: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    """The value of the answer; None if it is pass or fail: 1 if it passed, otherwise 0."""
    detail: str = ""
    prompt: str = ""
    prompt_version: str = ""
    answer: str = ""
    thinking: str = ""
    """What the model thought before it answered, if its provider shows it. Not part of the answer."""
    code: str | None = None
    extraction_rule: str = ""
    tests_total: Count = 0
    tests_passed: Count = 0
    tests: list[TestResult] = []
    usage: Usage = Usage()
    exit: str = ""
    fragile: bool = False
    calls: list[CallFacts] = []
    judgements: list[Judgement] = []
    """Set if a model judged the answer. Their tokens are not those of the measured model."""
    judge_prompt: str = ""
    repeat: RepeatFacts | None = None
    """Set in a run of kind `command`."""

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


class ExpectedEvent(Message):
    """How many items a harness will report in all, as soon as it says so."""

    type: Literal["expected"] = "expected"
    seq: int = Field(ge=1)
    total: Count


class LogEvent(Message):
    type: Literal["log"] = "log"
    seq: int = Field(ge=1)
    level: Literal["debug", "info", "warning", "error"] = "info"
    message: str


class CompleteEvent(Message):
    """The last event of a run, after all items were reported."""

    type: Literal["complete"] = "complete"
    seq: int = Field(ge=1)


class DeferredEvent(Message):
    """The last event of an attempt that did all it could: these calls wait for a batch of the provider."""

    type: Literal["deferred"] = "deferred"
    seq: int = Field(ge=1)
    calls: Count


class FailedEvent(Message):
    type: Literal["failed"] = "failed"
    seq: int = Field(ge=1)
    reason: FailureReason
    message: str
    code: str | None = None
    """The error code of a failed eval job."""


RunnerEvent = Annotated[
    StageEvent
    | HeartbeatEvent
    | ProgressEvent
    | ExpectedEvent
    | LogEvent
    | JobProgressEvent
    | EvalWrittenEvent
    | JudgementsEvent
    | CompleteEvent
    | DeferredEvent
    | FailedEvent,
    Field(discriminator="type"),
]


class UsageSample(Message):
    """The attempt's usage so far, by the kernel's counters; `at_s` counts from the claim."""

    at_s: float = Field(ge=0, le=1e9, allow_inf_nan=False)
    cpu_s: float = Field(ge=0, le=1e12, allow_inf_nan=False)
    memory_bytes: int = Field(ge=0, le=1 << 60)
    """Without memory that the kernel could reclaim immediately."""
    throttled_s: float | None = Field(default=None, ge=0, le=1e12, allow_inf_nan=False)
    """How long its CPU quota held it back; None if the kernel does not report it."""


class EventBatch(Message):
    """Consecutive events in ascending order. Events already stored are ignored; events after a gap are rejected.

    `usage` holds the samples since the last acknowledged batch.
    """

    attempt: int = Field(ge=1)
    events: list[RunnerEvent] = Field(max_length=1000)
    usage: list[UsageSample] = Field(default=[], max_length=500)


class EventAck(Message):
    ack_seq: int
    desired: Desired
