"""Pages of batches: the list, and one batch with its matrix of models, benchmarks and instance types."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from starlette.responses import Response

from orchestrator.batches.schemas import BatchEnd, CellOut, MatrixOut
from orchestrator.batches.state import EndMode
from orchestrator.batches.views import batch_view, batches_view, matrix_view
from orchestrator.commands.views import compare_runs, figure_views, ratio_rows
from orchestrator.dashboard.shell import Page, page_router
from orchestrator.http.policy import READ, RUN, Policy
from runner.contract.run_spec import RunKind

router = page_router()

BatchId = Annotated[str, Path(max_length=60)]
FRAGILE_SHOWN = 50


@router.get("/batches", policy=Policy(READ))
async def batches_page(page: Page, after: Annotated[str | None, Query(max_length=60)] = None) -> Response:
    batches = await batches_view(page.context, limit=30, after=after)
    return page.show("batches/batches.html", batches=batches.items, next=batches.next, paged=after is not None)


@router.get("/batches/{batch_id}", policy=Policy(READ))
async def batch_page(page: Page, batch_id: BatchId) -> Response:
    batch = await batch_view(page.context, batch_id)
    matrix = await matrix_view(page.context, batch_id)
    commands = any(member.kind == RunKind.COMMAND for group in batch.instance_types for member in group.members)
    compared = await compare_runs(page.context, batch=batch_id) if commands else None
    return page.show(
        "batches/batch.html",
        batch=batch,
        matrix=matrix,
        table=_table(matrix),
        fragile=matrix.fragile[:FRAGILE_SHOWN],
        compared=compared,
        rows=ratio_rows(compared) if compared else [],
        figures=[(group.label, figure_views(group.figures), group.repeats, group.failed) for group in compared.groups]
        if compared
        else [],
    )


@router.post("/batches/{batch_id}/end", policy=Policy(RUN))
async def end_batch(page: Page, batch_id: BatchId) -> Response:
    body = BatchEnd(mode=(await page.form()).get("mode", ["finish"])[0])
    batch = await page.context.batches.find(batch_id)
    await page.context.batches.end(batch.id, EndMode(body.mode))
    page.context.signals.look()
    return page.go(f"/batches/{batch_id}")


@router.post("/batches/{batch_id}/retry", policy=Policy(RUN, spends=True))
async def retry_batch(page: Page, batch_id: BatchId) -> Response:
    batch = await page.context.batches.find(batch_id)
    await page.context.batches.retry(batch.id)
    return page.go(f"/batches/{batch_id}")


def _table(matrix: MatrixOut) -> list[tuple[str | None, str, dict[str, CellOut]]]:
    """A row per model and benchmark, with the cells by instance type."""
    rows: dict[tuple[str | None, str], dict[str, CellOut]] = {}
    for cell in matrix.cells:
        rows.setdefault((cell.model, cell.benchmark), {})[cell.instance_type] = cell
    return [(model, benchmark, cells) for (model, benchmark), cells in rows.items()]
