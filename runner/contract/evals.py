"""Evals in the contract: what a runner receives about an eval, and what it reports about traces.

Imports nothing but the contract, which uses these messages in run specifications and events.
"""

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from runner.contract.message import Count, Message, Seconds

MAX_REASON_CHARS = 2000

TRACE_ID_MARK = "\u27e8trace id\u27e9"
"""Replaces the id in a trace; the runner inserts a different id each time it passes the trace to an eval."""


def generation_key(turn: int) -> str:
    """Returns the key of the model call that writes or repairs an eval."""
    return f"eval/generate/{turn}/0"


class Label(StrEnum):
    """A person's judgement of a trace."""

    POSITIVE = "positive"  #: the answer is good
    NEGATIVE = "negative"  #: the answer is bad


class JobStage(StrEnum):
    """The stage of an eval job."""

    FETCHING_TRACES = "fetching_traces"  #: the runner fetches the traces
    CALLING_LLM = "calling_llm"  #: the model writes the eval, or repairs it
    VALIDATING_CODE = "validating_code"  #: syntax, imports and the contract are checked
    TESTING_ACCURACY = "testing_accuracy"  #: the eval judges labelled traces in the sandbox
    SAVING_EVAL = "saving_eval"  #: the eval is being sent to the database
    EXECUTING = "executing"  #: an eval judges traces
    COMPLETED = "completed"  #: everything is stored


STAGE_PERCENT = {
    JobStage.FETCHING_TRACES: 0,
    JobStage.CALLING_LLM: 20,
    JobStage.VALIDATING_CODE: 60,
    JobStage.TESTING_ACCURACY: 70,
    JobStage.SAVING_EVAL: 90,
    JobStage.COMPLETED: 100,
}


class EvalFailure(StrEnum):
    """Why an eval gave no verdict on a trace."""

    TIMEOUT = "timeout"  #: it exceeded its time limit
    MEMORY = "memory"  #: it exceeded its memory limit
    CRASH = "crash"  #: it raised an exception, exited, or violated the protocol
    CONTRACT = "contract"  #: it returned something that violates the contract
    INFRA = "infra"  #: the sandbox failed to run it, twice; not the eval's fault


class EvalLimits(Message):
    """Limits for one evaluation of one trace."""

    seconds: float = 5.0
    memory_bytes: int = 50 << 20
    """On top of the interpreter's own memory."""
    slowdown: float = 1.0


class EvalTask(Message):
    """The task of a run of kind `eval_generate` or `eval_execute`. With `code` an eval is executed, without it one is
    written."""

    name: str = ""
    criterion: str = ""
    code: str | None = None
    traces: int = 0
    """How many traces remain."""
    seed: int = 0
    repairs: int = 3
    target: float = 0.95
    """If the eval judges this share of the training traces correctly, it is not sent back for repair."""
    failing_share: float = 0.05
    """An eval that gives no verdict on more than this share of the traces is refused."""
    limits: EvalLimits = EvalLimits()
    draft: str | None = None
    """Code written by a person: it is checked and tried like a model's answer, and no model is asked."""
    written: bool = False
    """An earlier attempt has delivered the eval; only completion remains."""


class TraceLine(Message):
    """One line of the traces response. It does not contain the trace's own id."""

    key: int
    trace: dict[str, Any]
    label: Label | None = None
    """For training traces only: labels of held-out traces stay with the orchestrator."""
    disputed: str = ""
    """For training traces only: an earlier eval's verdict that people reviewed and found wrong."""


class Judgement(Message):
    """An eval's verdict on one trace; `passed` is None if it gave none."""

    key: int
    passed: bool | None = None
    score: float | None = Field(default=None, ge=0, le=1)
    reason: str = ""
    failure: EvalFailure | None = None
    wall_ms: Seconds = 0.0


class Round(Message):
    """One answer of the model: what was wrong with it, or its accuracy on the training traces."""

    turn: Count
    code: str | None = None
    problem: str = ""
    right: Count | None = None
    tested: Count | None = None


class JobProgressEvent(Message):
    type: Literal["job_progress"] = "job_progress"
    seq: int = Field(ge=1)
    stage: JobStage
    percent: int = Field(ge=0, le=100)
    done: Count | None = None
    total: Count | None = None
    detail: str = ""
    round: Round | None = None
    """An answer that was just rejected."""


class EvalWrittenEvent(Message):
    """The eval that the model wrote and that passed the checks, with its verdicts on all labelled traces."""

    type: Literal["eval_written"] = "eval_written"
    seq: int = Field(ge=1)
    code: str
    judgements: list[Judgement]
    rounds: list[Round] = []


class JudgementsEvent(Message):
    """Verdicts of an eval that is being executed."""

    type: Literal["judgements"] = "judgements"
    seq: int = Field(ge=1)
    judgements: list[Judgement]
