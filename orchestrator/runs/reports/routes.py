"""REST for exporting results. Exports are streamed, with one page of results in memory at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import StreamingResponse

from orchestrator.errors import Invalid
from orchestrator.http.context import Context
from orchestrator.http.policy import READ, Policy, Router
from orchestrator.runs.reports.exports import streams
from orchestrator.runs.reports.exports.formats import MEDIA, TABLES, ExportFormat, check_kind, file_name
from orchestrator.runs.reports.exports.parquet.stream import as_parquet
from orchestrator.runs.reports.exports.streams import ExportedRun
from orchestrator.runs.routes import RunId, get_run, get_score

router = Router(tags=["runs"])

MAX_RUNS = 200
_BINARY = {ExportFormat.PARQUET, ExportFormat.INSPECT}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            media: {"schema": {"type": "string", **({"format": "binary"} if form in _BINARY else {})}}
            for form, media in MEDIA.items()
        }
    }
}
Runs = Annotated[
    list[Annotated[str, Query(min_length=1, max_length=60)]],
    Query(min_length=1, max_length=MAX_RUNS, description="The id of a run; may be given several times."),
]


@router.get(
    "/api/container-runs/{run_id}/export",
    policy=Policy(READ, deadline=False),
    response_class=StreamingResponse,
    responses=_ANSWERS,
)
async def export_run(
    run_id: RunId, context: Context, format: Annotated[ExportFormat, Query()] = ExportFormat.JSONL
) -> StreamingResponse:
    """Export the results so far: `jsonl`, `csv` and `parquet` with a row per item, `junit` with a test case per item,
    `inspect` as an `.eval` log, `json` as one self-describing log."""
    exported = await streams.exported_run(context.db, run_id)
    check_kind(exported.run.id, exported.run.kind, format)
    content: AsyncIterator[str | bytes]
    match format:
        case ExportFormat.JSON:
            content = streams.as_json(context.db, run_id, await _info(context, run_id))
        case ExportFormat.JUNIT:
            content = streams.as_junit(context.db, exported)
        case ExportFormat.INSPECT:
            content = streams.as_inspect(context.db, exported, context.clock.now())
        case _:
            content = _table(context, format, [exported])
    return _download(content, exported.run.id, format)


@router.get(
    "/api/exports",
    policy=Policy(READ, deadline=False),
    response_class=StreamingResponse,
    responses=_ANSWERS,
)
async def export_runs(
    run_id: Runs, context: Context, format: Annotated[ExportFormat, Query()] = ExportFormat.CSV
) -> StreamingResponse:
    """Export the results of several runs as one table: `csv`, `jsonl` or `parquet`. Every row names its run and model."""
    if format not in TABLES:
        raise Invalid(f"format {format.value} holds one run: use csv, jsonl or parquet, or export the runs one by one")
    exported = [await streams.exported_run(context.db, name) for name in dict.fromkeys(run_id)]
    for part in exported:
        check_kind(part.run.id, part.run.kind, format)
    return _download(_table(context, format, exported), f"{len(exported)}-runs", format)


def _table(context: Context, form: ExportFormat, runs: Sequence[ExportedRun]) -> AsyncIterator[str | bytes]:
    if form is ExportFormat.PARQUET:
        return as_parquet(streams.named_pages(context.db, runs))
    return streams.as_csv(context.db, runs) if form is ExportFormat.CSV else streams.as_jsonl(context.db, runs)


def _download(content: AsyncIterator[str | bytes], name: str, form: ExportFormat) -> StreamingResponse:
    headers = {"content-disposition": f'attachment; filename="{file_name(name, form)}"'}
    return StreamingResponse(content, media_type=MEDIA[form], headers=headers)


async def _info(context: Context, run_id: str) -> dict[str, Any]:
    run, score = await get_run(run_id, context), await get_score(run_id, context)
    return {
        "exported_at": context.clock.now().isoformat(),
        "run": run.model_dump(mode="json"),
        "scores": score.model_dump(mode="json")["benchmarks"],
    }
