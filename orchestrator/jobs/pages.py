"""The list of jobs of all kinds, and the page of an eval job: live stages, refused answers, result."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import Path, Query
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.dashboard.overview import reasons_to_wait
from orchestrator.dashboard.rendering.highlight import highlight
from orchestrator.dashboard.shell import Page, page_router
from orchestrator.dashboard.texts import visible
from orchestrator.evals import queries as eval_queries
from orchestrator.evals.tables import Eval, EvalSet
from orchestrator.http.context import caller_of
from orchestrator.http.policy import READ, RUN, Policy
from orchestrator.jobs.schemas import JobType
from orchestrator.jobs.views import (
    WORDS,
    find_job,
    is_live,
    job_view,
    jobs_view,
    kind_words,
    page_path,
    repair_words,
    stage_marks,
)
from orchestrator.runs import queries as run_queries
from orchestrator.runs.lifecycle import Status
from orchestrator.runs.queueing.drafts import EvalGenerateTask
from runner.contract.run_spec import EVAL_KINDS, RunKind

router = page_router()

JOBS_ON_A_PAGE = 50
JobId = Annotated[str, Path(min_length=1, max_length=60)]
Word = Annotated[str, Query(max_length=60)]


@router.get("/jobs", policy=Policy(READ))
async def jobs_page(
    page: Page, type: Word = "", status: Word = "", dead: Word = "", eval_set_id: Word = "", after: Word = ""
) -> Response:
    kind, state = type if type in WORDS else "", status if status in set(Status) else ""
    jobs = await jobs_view(
        page.context,
        limit=JOBS_ON_A_PAGE,
        after=after or None,
        type=JobType(kind) if kind else None,
        status=Status(state) if state else None,
        dead_letter=bool(dead),
        eval_set_id=eval_set_id or None,
    )
    filters = {"type": kind, "status": state, "dead": "1" if dead else "", "eval_set_id": eval_set_id}
    query_fields = {name: value for name, value in filters.items() if value}

    def link(**more: str) -> str:
        query = urlencode({**query_fields, **more})
        return f"{page.root}/jobs{'?' + query if query else ''}"

    return page.show(
        "jobs/jobs.html",
        jobs=jobs.items,
        kinds=WORDS,
        statuses=[member.value for member in Status],
        given=filters,
        filtered=bool(query_fields),
        paged=bool(after),
        first_link=link(),
        next_link=link(after=jobs.next) if jobs.next else None,
    )


@router.get("/jobs/{job_id}", policy=Policy(READ))
async def job_page(page: Page, job_id: JobId) -> Response:
    job = await job_view(page.context, job_id)
    if job.type not in EVAL_KINDS:
        return page.go(page_path(job))
    waits = await reasons_to_wait(page.context) if job.status == Status.PENDING else {}

    def read(session: Session) -> tuple[EvalSet | None, Eval | None, str, bool]:
        group = eval_queries.get_set(session, job.eval_set_id or "")
        row = eval_queries.get(session, job.eval_id) if job.eval_id else None
        task = run_queries.task_of(session, job_id) if job.type == RunKind.EVAL_GENERATE else None
        if not isinstance(task, EvalGenerateTask):
            return group, row, row.name if row else "", False
        return group, row, row.name if row else task.name, task.draft is not None

    group, row, name, by_hand = await page.context.db.read(read)
    return page.show(
        "jobs/job.html",
        job=job,
        group=group,
        row=row,
        name=visible(name),
        by_hand=by_hand,
        live=is_live(job),
        why=waits.get(job_id) or page.context.waiting_for(job_id),
        title=kind_words(job.type),
        marks=stage_marks(job, by_hand=by_hand) if job.type == RunKind.EVAL_GENERATE else [],
        repair=repair_words(job.detail),
        rounds=[(entry, highlight(visible(entry.code)) if entry.code else None) for entry in job.rounds],
    )


@router.post("/jobs/{job_id}/cancel", policy=Policy(RUN))
async def cancel_job(page: Page, job_id: JobId) -> Response:
    job = await find_job(page.context, job_id)
    await page.context.jobs.cancel(job_id, caller_of(page.request).scope)
    return page.go(page_path(job))


@router.post("/jobs/{job_id}/dismiss", policy=Policy(RUN))
async def dismiss_job(page: Page, job_id: JobId) -> Response:
    await page.context.jobs.dismiss(job_id)
    return page.go("/jobs?dead=1")


@router.post("/jobs/{job_id}/retry", policy=Policy(RUN))
async def retry_job(page: Page, job_id: JobId) -> Response:
    new_id = await page.context.jobs.retry(job_id, caller_of(page.request).scope)
    return page.go(f"/jobs/{new_id}")
