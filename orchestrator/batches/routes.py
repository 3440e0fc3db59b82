"""REST for batches."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Response
from pydantic import Discriminator, Tag

from orchestrator.batches import queries as batch_queries
from orchestrator.batches.schemas import (
    BatchCreate,
    BatchCreated,
    BatchDetail,
    BatchEnd,
    BatchOut,
    BatchRetried,
    CommandBatchCreate,
    MatrixOut,
)
from orchestrator.batches.service import NewBatch, NewCommandBatch, NewHarnessBatch
from orchestrator.batches.state import EndMode, newest_by_slot
from orchestrator.batches.views import batch_view, batches_view, matrix_view
from orchestrator.db.idempotency import keyed
from orchestrator.harnesses.schemas import HarnessBatchCreate
from orchestrator.http.context import Context
from orchestrator.http.policy import READ, RUN, Policy, Router
from orchestrator.http.problems import TAG
from orchestrator.http.schemas import Cursor, IdempotencyKey, Page

router = Router(prefix="/api/batches", tags=["batches"])

BatchId = Annotated[
    str, Path(min_length=1, max_length=60, pattern=r"^[0-9a-zA-Z-]+$", description="A batch's id or external_id.")
]


def _kind(body: Any) -> str:
    commands = "commands" in body if isinstance(body, dict) else isinstance(body, CommandBatchCreate)
    harnesses = "harnesses" in body if isinstance(body, dict) else isinstance(body, HarnessBatchCreate)
    return f"{TAG}commands" if commands else f"{TAG}harnesses" if harnesses else f"{TAG}benchmarks"


BatchBody = Annotated[
    Annotated[BatchCreate, Tag(f"{TAG}benchmarks")]
    | Annotated[CommandBatchCreate, Tag(f"{TAG}commands")]
    | Annotated[HarnessBatchCreate, Tag(f"{TAG}harnesses")],
    Discriminator(_kind),
]


@router.post("", policy=Policy(RUN, spends=True), status_code=202)
async def create_batch(
    body: BatchBody, context: Context, response: Response, idempotency_key: IdempotencyKey = None
) -> BatchCreated:
    """Queue a run for each combination, all or none. Responds once they are stored."""
    request: NewBatch | NewCommandBatch | NewHarnessBatch
    match body:
        case CommandBatchCreate():
            request, document = body.request(), body.shown()
        case HarnessBatchCreate():
            request, document = body.request(context.settings.reuse_answers), body.shown()
        case BatchCreate():
            request, document = body.request(context.settings.reuse_answers), body.model_dump(mode="json", exclude_none=True)
    key = keyed("POST /api/batches", idempotency_key)
    batch_id = await context.batches.create(request, document, key)
    batch = await context.batches.find(batch_id)
    runs = await context.db.read(lambda s: len(newest_by_slot(batch_queries.members(s, [batch_id]))))
    response.headers["location"] = f"/api/batches/{batch_id}"
    return BatchCreated(batch_id=batch_id, external_id=batch.external_id, runs=runs)


@router.get("", policy=Policy(READ))
async def list_batches(
    context: Context, limit: Annotated[int, Query(ge=1, le=100)] = 20, after: Cursor = None
) -> Page[BatchOut]:
    """Batches, newest first."""
    return await batches_view(context, limit=limit, after=after)


@router.get("/{batch_id}", policy=Policy(READ))
async def get_batch(batch_id: BatchId, context: Context) -> BatchDetail:
    """A batch by instance type: state, last heartbeat, current benchmark and problem, and every member."""
    return await batch_view(context, batch_id)


@router.get("/{batch_id}/matrix", policy=Policy(READ))
async def get_matrix(batch_id: BatchId, context: Context) -> MatrixOut:
    """Scores by instance type, and the problems whose verdict on the same answer differs between machines."""
    return await matrix_view(context, batch_id)


@router.post("/{batch_id}/end", policy=Policy(RUN), status_code=202)
async def end_batch(batch_id: BatchId, context: Context, body: BatchEnd | None = None) -> BatchDetail:
    """End a batch early: pending runs are dropped, live ones finish or are stopped, results are kept. Idempotent."""
    batch = await context.batches.find(batch_id)
    await context.batches.end(batch.id, EndMode((body or BatchEnd()).mode))
    context.signals.look()
    return await batch_view(context, batch.id)


@router.post("/{batch_id}/retry", policy=Policy(RUN, spends=True), status_code=202)
async def retry_batch(
    batch_id: BatchId,
    context: Context,
    cancelled: Annotated[bool, Query(description="Also those that were cancelled, by ending early for example.")] = False,
) -> BatchRetried:
    """New runs for the failed members; finished results and paid answers are kept."""
    batch = await context.batches.find(batch_id)
    return BatchRetried(batch_id=batch.id, run_ids=await context.batches.retry(batch.id, cancelled=cancelled))
