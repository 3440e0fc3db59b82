"""REST for jobs: list runs of every kind, follow them live, cancel and retry them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response
from pydantic import BeforeValidator

from orchestrator.db.idempotency import keyed
from orchestrator.evals.schemas import JobCreated
from orchestrator.http.context import Context, Services, caller_of
from orchestrator.http.policy import READ, RUN, Policy, Router
from orchestrator.http.problems import DatabaseErrorRoute
from orchestrator.http.schemas import Cursor, IdempotencyKey, Limit, Page
from orchestrator.http.streams import END, After, EventStream, LastEventId, stream_of, stream_start
from orchestrator.jobs.schemas import JobDetail, JobOut, JobType
from orchestrator.jobs.views import dataset_job, find_job, job_view, jobs_view, stream_event
from orchestrator.runs.lifecycle import TERMINAL, Status
from orchestrator.runs.live.routes import run_lines

router = Router(prefix="/api/jobs", route_class=DatabaseErrorRoute, tags=["jobs"])

JobId = Annotated[str, Path(min_length=1, max_length=60, description="A job's id, which is that of its run.")]


TYPE_NAMES = {"generate": JobType.EVAL_GENERATE.value, "execute": JobType.EVAL_EXECUTE.value}
JobTypeFilter = Annotated[
    JobType | None,
    BeforeValidator(lambda name: TYPE_NAMES.get(name, name)),
    Query(description="Also `generate` and `execute`."),
]
BUILD_LOOK_S = 0.25


@router.get("", policy=Policy(READ))
async def list_jobs(
    context: Context,
    limit: Limit = 50,
    after: Cursor = None,
    type: JobTypeFilter = None,
    status: Status | None = None,
    dead_letter: Annotated[
        bool, Query(description="Only those given up after 3 attempts, not dismissed, without a retry that completed.")
    ] = False,
    eval_set_id: Annotated[str | None, Query(max_length=60)] = None,
    eval_id: Annotated[str | None, Query(max_length=60)] = None,
) -> Page[JobOut]:
    """Jobs of all kinds, newest first, including datasets that are being added, until the service restarts."""
    return await jobs_view(
        context,
        limit=limit,
        after=after,
        type=type,
        status=status,
        dead_letter=dead_letter,
        eval_set_id=eval_set_id,
        eval_id=eval_id,
    )


@router.get("/{job_id}", policy=Policy(READ))
async def get_job(job_id: JobId, context: Context) -> JobDetail:
    return await job_view(context, job_id)


@router.get("/{job_id}/stream", policy=Policy(READ, streams=True), response_class=EventStream)
async def job_events(job_id: JobId, context: Context, last_event_id: LastEventId = None, after: After = None) -> EventStream:
    """Streams `progress` events, then `completed` or `failed` (also if it was cancelled), then closes."""
    job = await find_job(context, job_id)
    if job.type == JobType.DATASET_BUILD:
        return stream_of(_built(context, job_id))
    start = stream_start(last_event_id, after) or 0
    return stream_of(_event_lines(context, job, start))


@router.post("/{job_id}/cancel", policy=Policy(RUN), status_code=202)
async def cancel_job(job_id: JobId, context: Context, request: Request) -> JobOut:
    """Cancel a job. A pending job ends at once; a live one ends when its container is confirmed gone."""
    await find_job(context, job_id)
    await context.jobs.cancel(job_id, caller_of(request).scope)
    return await find_job(context, job_id)


@router.post("/{job_id}/retry", policy=Policy(RUN, spends=True), status_code=202)
async def retry_job(
    job_id: JobId, context: Context, request: Request, response: Response, idempotency_key: IdempotencyKey = None
) -> JobCreated:
    """Create a job for what an ended one left undone. Paid answers are kept, unless they are what was refused."""
    new_id = await context.jobs.retry(job_id, caller_of(request).scope, keyed("POST retry", idempotency_key))
    response.headers["location"] = f"/api/jobs/{new_id}"
    return JobCreated(job_id=new_id, status="pending" if context.dataset_jobs.find(new_id) is None else "running")


@router.post("/{job_id}/dismiss", policy=Policy(RUN))
async def dismiss_job(job_id: JobId, context: Context) -> JobOut:
    """Remove a dead letter from the list and the metric. The job and its results stay. Idempotent."""
    await context.jobs.dismiss(job_id)
    return await find_job(context, job_id)


async def _event_lines(context: Services, job: JobOut, start: int) -> AsyncIterator[str]:
    async with aclosing(run_lines(context, start, job.id, over=job.status in TERMINAL)) as batches:
        async for batch in batches:
            if isinstance(batch, str):
                yield batch
                continue
            for line in batch:
                if (named_event := stream_event(line.event, job.type)) is not None:
                    name, data = named_event
                    if name != "progress":
                        data |= await _ending(context, job.id)
                    yield f"id: {line.number}\nevent: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"


async def _built(context: Services, job_id: str) -> AsyncIterator[str]:
    """Streams the progress of a dataset when it changes, until it is done. Past events are not replayed."""
    sent: dict[str, Any] = {}
    while (build := context.dataset_jobs.find(job_id)) is not None:
        job = dataset_job(build)
        data = job.model_dump(mode="json", include={"type", "status", "stage", "percent", "progress", "detail", "error"})
        name = "progress" if job.status not in TERMINAL else "completed" if job.status == Status.COMPLETED else "failed"
        if data != sent:
            sent = data
            yield f"event: {name}\ndata: {json.dumps({'job_id': job_id, **data}, separators=(',', ':'))}\n\n"
        if name != "progress":
            yield END
            return
        await asyncio.sleep(BUILD_LOOK_S)


async def _ending(context: Services, job_id: str) -> dict[str, str | None]:
    """Facts about the end of a job that only its row has."""
    job = await find_job(context, job_id)
    return {"eval_id": job.eval_id, "code": job.error.code if job.error else None}
