"""REST for files that runners uploaded. They are always sent as downloads, whatever type they claim to be."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import Path
from fastapi.responses import FileResponse

from orchestrator.errors import NotFound
from orchestrator.http.context import Context
from orchestrator.http.policy import READ, Policy, Router
from orchestrator.runs import queries as run_queries
from orchestrator.runs.routes import RunId

router = Router(tags=["runs"])

_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}


@router.get(
    "/api/container-runs/{run_id}/artefacts/{name}",
    policy=Policy(READ, deadline=False),
    response_class=FileResponse,
    responses=_ANSWERS,
)
async def get_artefact(run_id: RunId, name: Annotated[str, Path(max_length=100)], context: Context) -> FileResponse:
    """Download one file that the runner uploaded."""
    await context.runs.get(run_id)
    row = await context.db.read(lambda s: run_queries.artefact(s, run_id, name))
    root = (context.settings.data.absolute() / "artefacts").resolve()
    path = (root / row.run_id / row.name).resolve() if row is not None else None
    if path is None or not path.is_relative_to(root) or not await asyncio.to_thread(path.is_file):
        raise NotFound(f"run {run_id} has no file {name!r}; GET /api/container-runs/{run_id} lists those there are")
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)
