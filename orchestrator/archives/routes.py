"""REST for archives: from disk, from the object store, or made from the rows during the download."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

from fastapi.responses import RedirectResponse, Response, StreamingResponse
from sqlmodel import Session

from orchestrator.archives import queries as archive_queries
from orchestrator.archives.batch_archives import BatchSnapshot
from orchestrator.archives.format.batch_archive import BatchMember, batch_tar_gz
from orchestrator.archives.format.contents import kind_of
from orchestrator.batches import queries as batch_queries
from orchestrator.batches.routes import BatchId
from orchestrator.batches.schemas import BatchOut
from orchestrator.batches.state import newest_by_slot
from orchestrator.batches.tables import Batch
from orchestrator.db.session import Database
from orchestrator.errors import Conflict
from orchestrator.http.context import Context
from orchestrator.http.policy import READ, Policy, Router
from orchestrator.runs.lifecycle import TERMINAL
from orchestrator.runs.routes import RunId

router = Router(tags=["archives"])

PIECE = 256 * 1024
GONE_WITHIN_S = 10.0
LOOK_S = 0.2
MEDIA = "application/gzip"
_ANSWERS: dict[int | str, dict[str, Any]] = {
    # Client generators only know the second type, which makes the response bytes for them.
    200: {
        "content": {
            media: {"schema": {"type": "string", "format": "binary"}} for media in (MEDIA, "application/octet-stream")
        }
    },
    307: {"description": "It is in the object store: `Location` is good for an hour."},
}


@router.get(
    "/api/container-runs/{run_id}/archive", policy=Policy(READ, deadline=False), response_class=Response, responses=_ANSWERS
)
async def get_run_archive(run_id: RunId, context: Context) -> Response:
    """`result.tar.gz` or `error.tar.gz` of an ended run."""
    run = await context.runs.get(run_id)
    if run.status not in TERMINAL:
        raise Conflict(f"run {run_id} is {run.status}; it has an archive once it has ended")
    await _containers_gone(context.db, [run_id])
    row = await context.db.read(lambda s: archive_queries.get(s, run_id))
    headers = {"content-disposition": f'attachment; filename="{run_id}-{kind_of(run.status)}.tar.gz"'}
    if row is not None and row.kind is not None:
        if (address := await context.archives.runs.address(row)) is not None:
            return RedirectResponse(address, 307)
        if (file := await asyncio.to_thread(context.archives.runs.open, row)) is not None:
            headers["content-length"] = str(os.fstat(file).st_size)
            return StreamingResponse(_pieces(file), media_type=MEDIA, headers={**headers, "etag": f'"{row.sha256}"'})
    contents = await context.archives.runs.contents(run_id)
    return StreamingResponse(contents.tar_gz(), media_type=MEDIA, headers=headers)


@router.get(
    "/api/batches/{batch_id}/archive", policy=Policy(READ, deadline=False), response_class=Response, responses=_ANSWERS
)
async def get_batch_archive(batch_id: BatchId, context: Context) -> Response:
    """All ended members in one file, each in `<instance-type>-<run-id>/`. The others are named in `batch.json`."""
    batch = await context.batches.find(batch_id)
    snapshot = await batch_snapshot(context.db, batch)
    if context.archives.batches is not None:
        address = await context.archives.batches.address(batch.id, snapshot.runs)
        if address is not None:
            return RedirectResponse(address, 307)
    await _containers_gone(context.db, [member.run_id for member in snapshot.members if member.ended])
    headers = {"content-disposition": f'attachment; filename="batch-{batch.external_id}.tar.gz"'}
    pieces = batch_tar_gz(snapshot.about, snapshot.members, context.archives.runs.contents)
    return StreamingResponse(pieces, media_type=MEDIA, headers=headers)


async def batch_snapshot(db: Database, batch: Batch) -> BatchSnapshot:
    def read(session: Session) -> BatchSnapshot:
        runs = batch_queries.members(session, [batch.id])
        newest = newest_by_slot(runs)
        document = BatchOut.of(batch, newest, runs).model_dump(
            mode="json", include={"id", "external_id", "name", "state", "request", "created_at"}
        )
        members = [BatchMember(run.id, run.instance_type, run.status, run.status in TERMINAL) for run, _ in newest]
        in_order = sorted(members, key=lambda member: member.instance_type)
        return BatchSnapshot({"batch": document}, in_order, len(runs))

    return await db.read(read)


async def _containers_gone(db: Database, run_ids: list[str]) -> None:
    """Waits until the containers are removed, a moment after the run's end: only then their output and exit codes are known.
    If an engine does not answer, the archive is made without them.
    """
    until = asyncio.get_running_loop().time() + GONE_WITHIN_S
    while await db.read(lambda s: archive_queries.have_containers(s, run_ids)):
        if asyncio.get_running_loop().time() > until:
            return
        await asyncio.sleep(LOOK_S)


async def _pieces(file: int) -> AsyncIterator[bytes]:
    try:
        while piece := await asyncio.to_thread(os.read, file, PIECE):
            yield piece
    finally:
        os.close(file)
