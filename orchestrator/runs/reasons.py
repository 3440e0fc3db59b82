"""Why a run or attempt ended otherwise than planned: a closed list, with one plain sentence for each."""

from __future__ import annotations

from enum import StrEnum

HELD = "it belongs to the original; this copy does not change it until it is adopted"
"""Why a run inherited by a copy of an installation makes no progress."""


class Reason(StrEnum):
    IMAGE_MISSING = "image_missing"
    ENGINE_ERROR = "engine_error"
    NAME_TAKEN = "name_taken"
    UNSCHEDULABLE = "unschedulable"
    START_TIMEOUT = "start_timeout"
    HEARTBEAT_LOST = "heartbeat_lost"
    CONTAINER_GONE = "container_gone"
    EVICTED = "evicted"
    OUT_OF_MEMORY = "out_of_memory"
    DEADLINE = "deadline"
    PROTOCOL = "protocol"
    RUNNER_ERROR = "runner_error"
    DATASET_ERROR = "dataset_error"
    PROVIDER_ERROR = "provider_error"
    BUDGET_EXHAUSTED = "budget_exhausted"
    PRICE_UNKNOWN = "price_unknown"
    NOTHING_MEASURED = "nothing_measured"
    EVAL_REFUSED = "eval_refused"
    EVAL_FAILING = "eval_failing"
    COMMAND_FAILED = "command_failed"
    HARNESS_FAILED = "harness_failed"
    CANCELLED_BY_USER = "cancelled_by_user"


SENTENCES: dict[Reason, str] = {
    Reason.IMAGE_MISSING: (
        "The image is not on the engine: build the runner's with `benchyard images build`, "
        "get a command's there, then retry."
    ),
    Reason.ENGINE_ERROR: "The engine refused to start the container.",
    Reason.NAME_TAKEN: "A container that is not ours has the name this run needed; it was left alone.",
    Reason.UNSCHEDULABLE: "The cluster found no machine for the container in time; its words say what is missing.",
    Reason.START_TIMEOUT: "The container started but its runner did not report in time.",
    Reason.HEARTBEAT_LOST: "The runner stopped reporting and was killed.",
    Reason.CONTAINER_GONE: "The container disappeared; somebody or something removed it.",
    Reason.EVICTED: "The cluster took the container's machine away: an eviction, a preemption, a drain or a lost machine.",
    Reason.OUT_OF_MEMORY: "The container used more memory than its instance type allows; choose a larger one.",
    Reason.DEADLINE: "The run took longer than its deadline and was stopped.",
    Reason.PROTOCOL: "The runner ended without completing its run.",
    Reason.RUNNER_ERROR: "The runner stopped with an error of its own; its log says more.",
    Reason.DATASET_ERROR: "A problem of the benchmark could not be fetched or understood.",
    Reason.PROVIDER_ERROR: "The provider refused the model calls; check key, model name and the provider's status.",
    Reason.BUDGET_EXHAUSTED: "The budget is used up; the run stopped early and keeps its results.",
    Reason.PRICE_UNKNOWN: "A budget or limit applies, but the model has no price; enter its prices, then retry.",
    Reason.NOTHING_MEASURED: "No item of the run counts: all ended with errors of provider or infrastructure.",
    Reason.EVAL_REFUSED: "The eval that the model wrote is not fit to be used; the message says why.",
    Reason.EVAL_FAILING: "The eval gives no verdict on too many traces; what it said before that is kept.",
    Reason.COMMAND_FAILED: "Every repeat of the command failed, so nothing was measured; its output says why.",
    Reason.HARNESS_FAILED: "The harness crashed or left no results that can be read; its last lines say why.",
    Reason.CANCELLED_BY_USER: "The run was cancelled by a user.",
}

FINAL = frozenset(
    {
        Reason.DATASET_ERROR,
        Reason.PROVIDER_ERROR,
        Reason.PRICE_UNKNOWN,
        Reason.DEADLINE,
        Reason.EVAL_REFUSED,
        Reason.EVAL_FAILING,
    }
)
"""Another attempt would end the same way, so these fail the run at once."""


def sentence(reason: str | None) -> str | None:
    return SENTENCES[Reason(reason)] if reason else None
