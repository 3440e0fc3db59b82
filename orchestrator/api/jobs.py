"""REST for jobs: runs of every kind in one list, followed live, cancelled and retried."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from sqlmodel import Session

from orchestrator.api.container_runs import Cursor, IdempotencyKey, Limit
from orchestrator.api.context import Context, Services
from orchestrator.api.eval_schemas import JobCreated, JobOut
from orchestrator.api.job_views import job_out, stream_event
from orchestrator.api.schemas import Page
from orchestrator.api.streams import After, EventStream, LastEventId, run_lines, stream_of, stream_start
from orchestrator.db import job_queries, model_queries
from orchestrator.errors import NotFound
from orchestrator.runs.lifecycle import MAX_FRUITLESS, TERMINAL, Status
from orchestrator.runs.service import Idempotency
from orchestrator.runs.unasked_model import UNASKED_MODEL
from runner.contract import RunKind

router = APIRouter(prefix="/api/jobs", tags=["jobs"])

JobId = Annotated[str, Path(min_length=1, max_length=60, description="A job's id, which is that of its run.")]


@router.get("")
async def list_jobs(
    context: Context,
    limit: Limit = 50,
    after: Cursor = None,
    type: RunKind | None = None,
    status: Status | None = None,
    dead_letter: Annotated[bool, Query(description="Only those that were given up after 3 attempts.")] = False,
    eval_set_id: Annotated[str | None, Query(max_length=60)] = None,
    eval_id: Annotated[str | None, Query(max_length=60)] = None,
) -> Page[JobOut]:
    """Jobs of all kinds, newest first."""
    statuses = [Status.FAILED.value] if dead_letter else [status.value] if status else None

    def read(session: Session) -> list[JobOut]:
        rows = job_queries.page(
            session,
            limit=limit + 1,
            after=after or None,
            kind=type and type.value,
            statuses=statuses if not (dead_letter and status not in (None, Status.FAILED)) else [],
            fruitless=MAX_FRUITLESS if dead_letter else None,
            eval_set_id=eval_set_id,
            eval_id=eval_id,
        )
        models = model_queries.by_ids(session, {run.model_id for run, _ in rows})
        return [job_out(run, job, _asked(models[run.model_id].slug)) for run, job in rows]

    jobs = await context.db.read(read)
    return Page(items=jobs[:limit], next=jobs[limit - 1].id if len(jobs) > limit else None)


@router.get("/{job_id}")
async def get_job(job_id: JobId, context: Context) -> JobOut:
    return await _job(job_id, context)


@router.get("/{job_id}/stream", response_class=EventStream)
async def job_events(job_id: JobId, context: Context, last_event_id: LastEventId = None, after: After = None) -> EventStream:
    """`progress` as it goes on, then `completed` or `failed` (also when it was cancelled), and the stream closes."""
    job = await _job(job_id, context)
    start = stream_start(last_event_id, after) or 0
    return stream_of(_told(context, job, start))


@router.post("/{job_id}/cancel", status_code=202)
async def cancel_job(job_id: JobId, context: Context) -> JobOut:
    """Stop a job. One that waits ends at once; one that runs ends when its container is confirmed gone."""
    await _job(job_id, context)
    await context.runs.cancel(job_id)
    context.signals.look()
    return await _job(job_id, context)


@router.post("/{job_id}/retry", status_code=202)
async def retry_job(
    job_id: JobId, context: Context, response: Response, idempotency_key: IdempotencyKey = None
) -> JobCreated:
    """A new job for what an ended one left undone. Paid answers are kept, unless it is they that were refused."""
    key = None if idempotency_key is None else Idempotency("POST retry", idempotency_key)
    new_id = await context.eval_jobs.retry(job_id, key)
    response.headers["location"] = f"/api/jobs/{new_id}"
    return JobCreated(job_id=new_id)


async def _job(job_id: str, context: Services) -> JobOut:
    def read(session: Session) -> JobOut | None:
        found = job_queries.get(session, job_id)
        if found is None:
            return None
        model = model_queries.get(session, found[0].model_id)
        return job_out(*found, _asked(model.slug) if model else None)

    job = await context.db.read(read)
    if job is None:
        raise NotFound(f"there is no job {job_id!r}; GET /api/jobs lists those there are")
    return job


def _asked(slug: str) -> str | None:
    return None if slug == UNASKED_MODEL else slug


async def _told(context: Services, job: JobOut, start: int) -> AsyncIterator[str]:
    async with aclosing(run_lines(context, start, job.id, over=job.status in TERMINAL)) as batches:
        async for batch in batches:
            if isinstance(batch, str):
                yield batch
                continue
            for told in batch:
                if (found := stream_event(told.event, job.type)) is not None:
                    name, data = found
                    if name != "progress":
                        data |= await _ending(context, job.id)
                    yield f"id: {told.number}\nevent: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"


async def _ending(context: Services, job_id: str) -> dict[str, str | None]:
    """What only the row knows of how a job ended."""
    job = await _job(job_id, context)
    return {"eval_id": job.eval_id, "code": job.error.code if job.error else None}
