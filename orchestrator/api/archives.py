"""REST for archives: from the disk, from the object store, or made anew from the rows while it is read."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter
from fastapi.responses import RedirectResponse, Response, StreamingResponse

from orchestrator.api.batches import BatchId, get_batch
from orchestrator.api.container_runs import RunId
from orchestrator.api.context import Context
from orchestrator.archives.batch_archive import BatchMember, batch_tar_gz
from orchestrator.archives.contents import kind_of
from orchestrator.db import archive_queries
from orchestrator.errors import Conflict
from orchestrator.runs.lifecycle import TERMINAL

router = APIRouter(tags=["archives"])

PIECE = 256 * 1024
MEDIA = "application/gzip"
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {MEDIA: {"schema": {"type": "string", "format": "binary"}}}},
    307: {"description": "It is in the object store: `Location` is good for an hour."},
}


@router.get("/api/container-runs/{run_id}/archive", response_class=Response, responses=_ANSWERS)
async def get_run_archive(run_id: RunId, context: Context) -> Response:
    """`result.tar.gz` or `error.tar.gz` of an ended run."""
    run = await context.runs.get(run_id)
    if run.status not in TERMINAL:
        raise Conflict(f"run {run_id} is {run.status}; it has an archive once it has ended")
    row = await context.db.read(lambda s: archive_queries.get(s, run_id))
    headers = {"content-disposition": f'attachment; filename="{run_id}-{kind_of(run.status)}.tar.gz"'}
    if row is not None and row.kind is not None:
        if (address := context.archives.address(row)) is not None:
            return RedirectResponse(address, 307)
        if (file := await asyncio.to_thread(context.archives.open, row)) is not None:
            headers["content-length"] = str(os.fstat(file).st_size)
            return StreamingResponse(_pieces(file), media_type=MEDIA, headers={**headers, "etag": f'"{row.sha256}"'})
    contents = await context.archives.contents(run_id)
    return StreamingResponse(contents.tar_gz(), media_type=MEDIA, headers=headers)


@router.get("/api/batches/{batch_id}/archive", response_class=Response, responses={200: _ANSWERS[200]})
async def get_batch_archive(batch_id: BatchId, context: Context) -> Response:
    """All ended members in one file, each in `<instance-type>-<run-id>/`. The others are named in `batch.json`."""
    batch = await get_batch(batch_id, context)
    members = [
        BatchMember(each.run_id, group.instance_type, each.status, each.status in TERMINAL)
        for group in batch.instance_types
        for each in group.members
    ]
    about = {"batch": batch.model_dump(mode="json", include={"id", "external_id", "name", "state", "request", "created_at"})}
    headers = {"content-disposition": f'attachment; filename="batch-{batch.external_id}.tar.gz"'}
    return StreamingResponse(batch_tar_gz(about, members, context.archives.contents), media_type=MEDIA, headers=headers)


async def _pieces(file: int) -> AsyncIterator[bytes]:
    try:
        while piece := await asyncio.to_thread(os.read, file, PIECE):
            yield piece
    finally:
        os.close(file)
