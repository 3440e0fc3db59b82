"""The part of the contract that is about evals: what a runner is told of one, and what it says of traces.

A leaf, like `runner.contract`, which puts these bodies into the specification of a run and among its events.
"""

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from runner.contract.message import Count, Message, Seconds

MAX_REASON_CHARS = 2000

TRACE_ID_MARK = "\u27e8trace id\u27e9"
"""Stands in a trace wherever its id stood; the runner puts another id there each time it hands the trace to an eval."""


def generation_key(turn: int) -> str:
    """The key of the model call in which an eval is written, or repaired."""
    return f"eval/generate/{turn}/0"


class Label(StrEnum):
    """What a person thinks of a trace."""

    POSITIVE = "positive"  #: it is as it should be
    NEGATIVE = "negative"  #: it is not


class JobStage(StrEnum):
    """Where a job about evals is."""

    FETCHING_TRACES = "fetching_traces"  #: the runner fetches the traces
    CALLING_LLM = "calling_llm"  #: the model writes the eval, or repairs it
    VALIDATING_CODE = "validating_code"  #: syntax, imports and the contract are checked
    TESTING_ACCURACY = "testing_accuracy"  #: the eval judges labelled traces in the sandbox
    SAVING_EVAL = "saving_eval"  #: the eval is on its way to the database
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

    TIMEOUT = "timeout"  #: it took longer than its limit
    MEMORY = "memory"  #: it needed more memory than its limit
    CRASH = "crash"  #: it raised, ended, or broke out of the protocol
    CONTRACT = "contract"  #: it returned something else than the contract asks for
    INFRA = "infra"  #: the sandbox could not carry it out, twice; not the eval's fault


class EvalLimits(Message):
    """What one evaluation of one trace may use."""

    seconds: float = 5.0
    memory_bytes: int = 50 << 20
    """Beyond what the interpreter itself occupies."""
    slowdown: float = 1.0


class EvalTask(Message):
    """What a run of kind `eval_generate` or `eval_execute` is about. With `code` it is executed, else it is written."""

    name: str = ""
    criterion: str = ""
    code: str | None = None
    traces: int = 0
    """How many traces are still to come."""
    seed: int = 0
    repairs: int = 3
    target: float = 0.95
    """With this share of the training traces right, the eval is not given back for repair."""
    failing_share: float = 0.05
    """An eval that gives no verdict on more than this share of traces is refused."""
    limits: EvalLimits = EvalLimits()
    draft: str | None = None
    """Code that a person wrote: it is checked and tried like a model's answer, and no model is asked."""
    written: bool = False
    """An earlier attempt has delivered the eval: what is left is to complete."""


class TraceLine(Message):
    """One line of the traces answer. The trace's own id is not in it."""

    key: int
    trace: dict[str, Any]
    label: Label | None = None
    """Of training traces only: what is held out stays with the orchestrator."""
    disputed: str = ""
    """Of training traces only: what an earlier eval said, which people looked at and found wrong."""


class Judgement(Message):
    """What an eval said of one trace; `passed` is None when it gave no verdict."""

    key: int
    passed: bool | None = None
    score: float | None = Field(default=None, ge=0, le=1)
    reason: str = ""
    failure: EvalFailure | None = None
    wall_ms: Seconds = 0.0


class Round(Message):
    """One answer of the model: what was wrong with it, or how it did on the training traces."""

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
    """An answer that has just been found wanting."""


class EvalWrittenEvent(Message):
    """The eval that the model wrote and the checks let pass, with its verdicts on all labelled traces."""

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
