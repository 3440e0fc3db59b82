"""Jobs as pages show them: what they do in words, where a job about evals is among its stages. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchestrator.jobs.schemas import JobOut, JobType
from orchestrator.runs.lifecycle import TERMINAL, Status
from runner.contract import EVAL_KINDS, RunKind
from runner.contract_evals import STAGE_PERCENT, JobStage

WORDS = {
    RunKind.BENCHMARK.value: "benchmark",
    RunKind.GRADE.value: "grade stored answers",
    RunKind.EVAL_GENERATE.value: "write an eval",
    RunKind.EVAL_EXECUTE.value: "execute an eval",
    RunKind.COMMAND.value: "measure a command",
    JobType.DATASET_BUILD.value: "add a dataset",
}
STAGE_WORDS = {
    JobStage.FETCHING_TRACES: "Fetch traces",
    JobStage.CALLING_LLM: "Ask the model",
    JobStage.VALIDATING_CODE: "Check the code",
    JobStage.TESTING_ACCURACY: "Test it on traces",
    JobStage.SAVING_EVAL: "Save",
    JobStage.COMPLETED: "Done",
}
_REPAIR = re.compile(r"repair (\d+) of (\d+)")


@dataclass(frozen=True)
class StageMark:
    """`state` is `past`, `now` or `next`."""

    name: str
    words: str
    percent: int
    state: str


def kind_words(kind: str) -> str:
    return WORDS.get(kind, kind.replace("_", " "))


def place_of(job: JobOut) -> str:
    """The page of a job, below the root."""
    if job.type == JobType.DATASET_BUILD:
        return "/datasets"
    return f"/jobs/{job.id}" if job.type in EVAL_KINDS else f"/runs/{job.id}"


def is_live(job: JobOut) -> bool:
    return job.status not in TERMINAL


def repair_words(detail: str) -> str:
    """`Repair 1 of 3` from what the runner says of where it is; empty in the first round."""
    found = _REPAIR.search(detail)
    return f"Repair {found[1]} of {found[2]}" if found else ""


def stage_marks(job: JobOut, *, by_hand: bool) -> list[StageMark]:
    """The stages of having an eval written. A repair begins again at the model: its own stages are what is shown."""
    shown = [stage for stage in STAGE_WORDS if not (by_hand and stage is JobStage.CALLING_LLM)]
    over = job.status == Status.COMPLETED
    names = [stage.value for stage in shown]
    now = len(shown) if over else names.index(job.stage) if job.stage in names else -1
    return [
        StageMark(
            stage.value, STAGE_WORDS[stage], STAGE_PERCENT[stage], "past" if n < now else "now" if n == now else "next"
        )
        for n, stage in enumerate(shown)
    ]
