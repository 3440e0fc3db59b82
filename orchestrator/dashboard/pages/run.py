"""A run's page, what can be done with the run, and its files."""

from __future__ import annotations

import asyncio
import csv
import io
from typing import Annotated

from fastapi import Path, Query
from fastapi.responses import FileResponse
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.api.context import Services
from orchestrator.dashboard.frame import Page, page_router
from orchestrator.dashboard.pages.overview import reasons_to_wait
from orchestrator.dashboard.texts import cell
from orchestrator.dashboard.views.run_page import Entries, RunPage, run_page
from orchestrator.datasets.errors import PackDamaged, UnknownBenchmark
from orchestrator.datasets.pack import Entry
from orchestrator.db import model_queries, page_queries, run_queries
from orchestrator.db.page_queries import ItemLine
from orchestrator.db.tables import Artefact, ContainerRun, Event
from orchestrator.errors import NotFound
from runner.contract import Outcome

router = page_router()

ITEMS_ON_A_PAGE = 100
LOG_LINES = 200
TAIL_CHARS = 20_000
RunId = Annotated[str, Path(min_length=1, max_length=60)]
CSV_COLUMNS = tuple(ItemLine.__dataclass_fields__)


@router.get("/runs/{run_id}")
async def show_run(
    page: Page,
    run_id: RunId,
    outcome: Annotated[str, Query(max_length=30)] = "",
    after: Annotated[int, Query(ge=-1, le=2**31 - 1)] = -1,
) -> Response:
    context = page.context
    row = await context.runs.get(run_id)
    waits = await reasons_to_wait(context) if row.status == "pending" else {}
    entries = await entries_of(context, row)
    now, why = context.clock.now(), waits.get(run_id) or context.waiting_for(run_id)

    def read(session: Session) -> tuple[RunPage, list[ItemLine], list[Event], str, list[Artefact]]:
        run = run_queries.get(session, run_id)
        assert run is not None
        model = model_queries.get(session, run.model_id)
        attempts = run_queries.attempts(session, run_id)
        items = page_queries.items(session, run_id)
        view = run_page(run, model.slug if model else "?", attempts, items, entries, now=now, why=why)
        tail = (attempts[-1].log_tail or "")[-TAIL_CHARS:] if attempts else ""
        lines = list(page_queries.last_lines(session, run_id, LOG_LINES))
        return view, items, lines, tail, list(run_queries.artefacts(session, run_id))

    view, items, lines, tail, artefacts = await context.db.read(read)
    wanted = outcome if outcome in set(Outcome) else ""
    chosen = [item for item in items if item.position > after and (not wanted or item.outcome == wanted)]
    shown = chosen[:ITEMS_ON_A_PAGE]
    return page.show(
        "run.html",
        view=view,
        run=view.run,
        items=[(item, entries.get((item.benchmark, item.problem_id))) for item in shown],
        more=shown[-1].position if len(chosen) > len(shown) else None,
        paged=after >= 0,
        outcome=wanted,
        lines=lines,
        tail=tail,
        artefacts=artefacts,
    )


@router.post("/runs/{run_id}/cancel")
async def cancel_run(page: Page, run_id: RunId) -> Response:
    await page.context.runs.cancel(run_id)
    page.context.signals.look()
    return page.go(f"/runs/{run_id}")


@router.post("/runs/{run_id}/retry")
async def retry_run(page: Page, run_id: RunId) -> Response:
    return page.go(f"/runs/{await page.context.runs.retry(run_id)}")


@router.get("/runs/{run_id}/items.csv")
async def items_as_csv(page: Page, run_id: RunId) -> Response:
    """All results without their texts, for a spreadsheet."""
    await page.context.runs.get(run_id)
    items = await page.context.db.read(lambda s: page_queries.items(s, run_id))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(CSV_COLUMNS)
    for item in items:
        values = [getattr(item, name) for name in CSV_COLUMNS]
        writer.writerow(["" if value is None else cell(value) if isinstance(value, str) else value for value in values])
    disposition = {"content-disposition": f'attachment; filename="benchyard-{run_id[:36]}.csv"'}
    return Response(text.getvalue(), media_type="text/csv; charset=utf-8", headers=disposition)


@router.get("/runs/{run_id}/artefacts/{name}")
async def artefact(page: Page, run_id: RunId, name: Annotated[str, Path(max_length=100)]) -> Response:
    """A file that the runner left: as a download, whatever it claims to be."""
    row = await page.context.db.read(lambda s: page_queries.artefact(s, run_id, name))
    root = (page.context.settings.data.absolute() / "artefacts").resolve()
    path = (root / row.run_id / row.name).resolve() if row is not None else None
    if path is None or not path.is_relative_to(root) or not await asyncio.to_thread(path.is_file):
        raise NotFound(f"run {run_id} has no file {name!r}")
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)


async def entries_of(context: Services, run: ContainerRun) -> Entries:
    """What the datasets know of the run's problems; one that is gone or damaged says nothing."""

    def look() -> Entries:
        found: dict[tuple[str, str], Entry] = {}
        for name in run.benchmarks:
            try:
                found |= {(name, entry.id): entry for entry in context.catalogue.entries(name)}
            except (UnknownBenchmark, PackDamaged):
                continue
        return found

    return await asyncio.to_thread(look)
