"""REST for exporting results. Exports are streamed, with one page of results in memory at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import StreamingResponse

from orchestrator.http.context import Context
from orchestrator.http.policy import READ, Policy, Router
from orchestrator.runs import item_queries
from orchestrator.runs.reports import exports
from orchestrator.runs.reports.exports import ExportFormat
from orchestrator.runs.routes import RunId, get_run, get_score
from orchestrator.runs.tables import ItemRow

router = Router(tags=["runs"])

PAGE = 100
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {media: {"schema": {"type": "string"}} for media in exports.MEDIA.values()}}
}


@router.get(
    "/api/container-runs/{run_id}/export",
    policy=Policy(READ, deadline=False),
    response_class=StreamingResponse,
    responses=_ANSWERS,
)
async def export_run(
    run_id: RunId, context: Context, format: Annotated[ExportFormat, Query()] = ExportFormat.JSONL
) -> StreamingResponse:
    """Export the results so far: `jsonl` and `csv` with one line per item, `json` as one self-describing log."""
    run = await context.runs.get(run_id)
    pages = _pages(context, run_id)
    text = {
        ExportFormat.JSONL: partial(_jsonl, pages),
        ExportFormat.CSV: partial(_csv, pages),
        ExportFormat.JSON: partial(_json, context, run_id, pages),
    }[format]
    name = f"benchyard-{run.id}.{format.value}"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(text(), media_type=exports.MEDIA[format], headers=headers)


async def _pages(context: Context, run_id: str) -> AsyncIterator[Sequence[ItemRow]]:
    after = -1
    while rows := await context.db.read(partial(item_queries.whole_page, run_id=run_id, limit=PAGE, after=after)):
        yield rows
        after = rows[-1].position


async def _jsonl(pages: AsyncIterator[Sequence[ItemRow]]) -> AsyncIterator[str]:
    async for rows in pages:
        yield await asyncio.to_thread(exports.as_jsonl, rows)


async def _csv(pages: AsyncIterator[Sequence[ItemRow]]) -> AsyncIterator[str]:
    yield exports.csv_head()
    async for rows in pages:
        yield await asyncio.to_thread(exports.as_csv, rows)


async def _json(context: Context, run_id: str, pages: AsyncIterator[Sequence[ItemRow]]) -> AsyncIterator[str]:
    run, score = await get_run(run_id, context), await get_score(run_id, context)
    info = {
        "exported_at": context.clock.now().isoformat(),
        "run": run.model_dump(mode="json"),
        "scores": score.model_dump(mode="json")["benchmarks"],
    }
    yield exports.json_head(info)
    first = True
    async for rows in pages:
        yield await asyncio.to_thread(exports.as_json_items, rows, first)
        first = False
    yield exports.JSON_TAIL
