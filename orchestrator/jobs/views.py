"""A job as responses, streams and pages show it: one form for runs of every kind."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from orchestrator.datasets.jobs import Job
from orchestrator.errors import Code, NotFound
from orchestrator.evals.schemas import RoundOut
from orchestrator.evals.tables import EvalJob
from orchestrator.http.context import Services
from orchestrator.http.schemas import Page
from orchestrator.jobs import queries as job_queries
from orchestrator.jobs.schemas import JobDetail, JobError, JobOut, JobType
from orchestrator.runs.lifecycle import MAX_WITHOUT_PROGRESS, TERMINAL, Status
from orchestrator.runs.live.feed import LoggedEvent
from orchestrator.runs.reasons import Reason
from orchestrator.runs.reports.model_cost import ModelCost
from orchestrator.runs.reports.model_names import name_of_model, names_by_run
from orchestrator.runs.schemas import Progress
from orchestrator.runs.service import is_dead_letter
from orchestrator.runs.tables import ContainerRun
from runner.contract.evals import STAGE_PERCENT, JobStage
from runner.contract.run_spec import EVAL_KINDS, RunKind

CODES: dict[str, Code] = {
    Reason.PROVIDER_ERROR: Code.EXTERNAL_API_ERROR,
    Reason.BUDGET_EXHAUSTED: Code.BUDGET_EXHAUSTED,
    Reason.PRICE_UNKNOWN: Code.BUDGET_EXHAUSTED,
    Reason.EVAL_REFUSED: Code.INVALID_CODE,
    Reason.EVAL_FAILING: Code.EXECUTION_ERROR,
    Reason.DEADLINE: Code.EXECUTION_TIMEOUT,
    Reason.START_TIMEOUT: Code.EXECUTION_TIMEOUT,
}
CANCELLED = "CANCELLED"
TOLD = frozenset({"job_progress", "eval_written", "judgements", "complete", "stage", "progress"})


async def jobs_view(
    context: Services,
    *,
    limit: int,
    after: str | None = None,
    type: JobType | None = None,
    status: Status | None = None,
    dead_letter: bool = False,
    eval_set_id: str | None = None,
    eval_id: str | None = None,
) -> Page[JobOut]:
    statuses = [Status.FAILED.value] if dead_letter else [status.value] if status else None

    def read(session: Session) -> list[JobOut]:
        rows = job_queries.page(
            session,
            limit=limit + 1,
            after=after or None,
            kind=type and type.value,
            statuses=statuses if not (dead_letter and status not in (None, Status.FAILED)) else [],
            dead_after=MAX_WITHOUT_PROGRESS if dead_letter else None,
            eval_set_id=eval_set_id,
            eval_id=eval_id,
        )
        models = names_by_run(session, [run for run, _ in rows])
        return [job_out(run, job, models[run.id]) for run, job in rows]

    jobs = [] if type is JobType.DATASET_BUILD else await context.db.read(read)
    if type in (None, JobType.DATASET_BUILD) and not (dead_letter or eval_set_id or eval_id):
        builds = [dataset_job(job) for job in context.dataset_jobs.all() if not after or job.id < after]
        jobs += [build for build in builds if status in (None, build.status)]
        jobs.sort(key=lambda job: job.id, reverse=True)
    return Page(items=jobs[:limit], next=jobs[limit - 1].id if len(jobs) > limit else None)


async def find_job(context: Services, job_id: str) -> JobOut:
    if (build := context.dataset_jobs.find(job_id)) is not None:
        return dataset_job(build)

    def read(session: Session) -> JobOut | None:
        row = job_queries.get(session, job_id)
        return None if row is None else job_out(*row, name_of_model(session, row[0]))

    job = await context.db.read(read)
    if job is None:
        raise NotFound(f"there is no job {job_id!r}; GET /api/jobs lists the existing ones")
    return job


async def job_view(context: Services, job_id: str) -> JobDetail:
    job = await find_job(context, job_id)
    rounds = await context.db.read(lambda s: job_queries.rounds(s, job_id))
    return JobDetail(**job.model_dump(), rounds=[RoundOut(**entry) for entry in rounds])


def job_out(run: ContainerRun, job: EvalJob | None, model: str | None) -> JobOut:
    percent = 100 * run.items_done // run.items_total if run.items_total else 0
    average = None
    if job is not None and run.kind == RunKind.EVAL_EXECUTE and run.items_done:
        average = round(job.spent_ms / run.items_done, 3)
    items_done, total = run.items_done, run.items_total
    if job is not None and run.kind == RunKind.EVAL_GENERATE and job.stage_total is not None:
        items_done, total = job.stage_done or 0, job.stage_total
    return JobOut(
        id=run.id,
        type=run.kind,
        status=run.status,
        stage=(job.stage if job is not None else None) or run.stage,
        percent=100 if run.status == Status.COMPLETED else job.percent if job is not None else percent,
        progress=Progress(done=items_done, total=total),
        detail=job.detail if job is not None else "",
        average_ms=average,
        priority=run.priority,
        attempt=run.attempt,
        dead_letter=is_dead_letter(run),
        dismissed_at=run.dismissed_at,
        succeeded_by=run.succeeded_by,
        model=model,
        eval_set_id=job.eval_set_id if job is not None else None,
        eval_id=job.eval_id if job is not None else None,
        error=_error(run, job),
        retry_of=run.retry_of,
        next_attempt_at=run.not_before,
        cost_usd=ModelCost(run.cost_usd, run.unpriced_calls).usd,
        known_cost_usd=run.cost_usd,
        unpriced_calls=run.unpriced_calls,
        created_at=run.created_at,
        started_at=run.started_at,
        completed_at=run.completed_at,
    )


DATASET_STATES = {"running": Status.RUNNING, "done": Status.COMPLETED, "failed": Status.FAILED}


def dataset_job(job: Job) -> JobOut:
    """A dataset that is being added, as a job."""
    status = DATASET_STATES.get(job.state, Status.CANCELLED)
    error = None
    if job.error is not None:
        code = CANCELLED if status is Status.CANCELLED else Code.EXECUTION_ERROR.value
        error = JobError(code=code, reason=None, message=job.error)
    percent = 100 * job.done_bytes // job.total_bytes if job.total_bytes else 0
    completed = status is Status.COMPLETED
    return JobOut(
        id=job.id,
        type=JobType.DATASET_BUILD,
        status=status,
        stage=job.step or None,
        percent=100 if completed else min(percent, 99),
        progress=Progress(
            done=job.problems or 0 if completed else job.done_bytes,
            total=job.problems or 0 if completed else job.total_bytes,
        ),
        detail=job.file,
        priority=0,
        attempt=1,
        dead_letter=False,
        model=None,
        name=job.name,
        retriable=job.repeatable,
        error=error,
        created_at=job.started_at,
        started_at=job.started_at,
        completed_at=job.ended_at,
    )


def _error(run: ContainerRun, job: EvalJob | None) -> JobError | None:
    if run.reason is None:
        return None
    return JobError(
        code=error_code(run.status, run.reason, job.error_code if job is not None else None),
        reason=run.reason,
        message=run.error_message or "",
    )


def error_code(status: str, reason: str | None, reported: str | None) -> str:
    if status == Status.CANCELLED:
        return CANCELLED
    if reported in {code.value for code in Code}:
        return str(reported)
    return CODES.get(reason or "", Code.EXECUTION_ERROR).value


def stream_event(event: LoggedEvent, kind: str) -> tuple[str, dict[str, Any]] | None:
    """The event of a job's stream for a logged event: `progress`, `completed` or `failed`; None if it is not sent."""
    data = event.data
    common = {"job_id": event.run_id, "type": kind, "at": event.at.isoformat(), "attempt": event.attempt}
    if event.type == "transition":
        status = data.get("status")
        change = {"status": status, "reason": data.get("reason"), "message": data.get("message")}
        if status not in TERMINAL:
            return "progress", {**common, **change}
        if status == Status.COMPLETED:
            return "completed", {**common, **change, "percent": 100}
        return "failed", {**common, **change}
    if event.type in TOLD and not (event.type == "stage" and kind in EVAL_KINDS):  # eval jobs have stages of their own
        progress = {key: value for key, value in data.items() if key != "score"}
        if data.get("stage") == JobStage.TESTING_ACCURACY:
            progress["tested"] = data.get("done")
        if event.type == "progress" and data.get("total"):
            progress["percent"] = 100 * data.get("done", 0) // data["total"]
        return "progress", {**common, "status": "running", **progress}
    return None


WORDS = {
    RunKind.BENCHMARK.value: "benchmark",
    RunKind.GRADE.value: "grade stored answers",
    RunKind.EVAL_GENERATE.value: "write an eval",
    RunKind.EVAL_EXECUTE.value: "execute an eval",
    RunKind.COMMAND.value: "measure a command",
    RunKind.HARNESS.value: "run a harness",
    JobType.DATASET_BUILD.value: "add a dataset",
}
STAGE_WORDS = {
    JobStage.FETCHING_TRACES: "Fetch traces",
    JobStage.CALLING_LLM: "Ask the model",
    JobStage.VALIDATING_CODE: "Check the code",
    JobStage.TESTING_ACCURACY: "Test on traces",
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


def page_path(job: JobOut) -> str:
    """The path of a job's page."""
    if job.type == JobType.DATASET_BUILD:
        return "/datasets"
    return f"/jobs/{job.id}" if job.type in EVAL_KINDS else f"/runs/{job.id}"


def is_live(job: JobOut) -> bool:
    return job.status not in TERMINAL


def repair_words(detail: str) -> str:
    """`Repair 1 of 3`, from the runner's description of its step; empty in the first round."""
    match = _REPAIR.search(detail)
    return f"Repair {match[1]} of {match[2]}" if match else ""


def stage_marks(job: JobOut, *, by_hand: bool) -> list[StageMark]:
    """The stages of writing an eval. A repair starts again at the model call, so only its own stages are marked."""
    stages = [stage for stage in STAGE_WORDS if not (by_hand and stage is JobStage.CALLING_LLM)]
    over = job.status == Status.COMPLETED
    names = [stage.value for stage in stages]
    now = len(stages) if over else names.index(job.stage) if job.stage in names else -1
    return [
        StageMark(
            stage.value, STAGE_WORDS[stage], STAGE_PERCENT[stage], "past" if n < now else "now" if n == now else "next"
        )
        for n, stage in enumerate(stages)
    ]
