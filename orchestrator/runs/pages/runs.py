"""The list of runs. All filters are in the address."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.dashboard.overview import model_names, reasons_to_wait
from orchestrator.dashboard.shell import Page, page_router
from orchestrator.http.policy import READ, Policy
from orchestrator.runs.lifecycle import Status
from orchestrator.runs.reports import queries as page_queries
from orchestrator.runs.reports.model_names import names_by_run
from orchestrator.runs.reports.queries import RunFilter
from orchestrator.runs.views.runs import RunLine, run_line

router = page_router()

PAGE_SIZE = 50
Word = Annotated[str, Query(max_length=100)]


@router.get("/runs", policy=Policy(READ))
async def runs_page(
    page: Page,
    status: Word = "",
    model: Annotated[str, Query(pattern=r"^\d{0,9}$")] = "",
    benchmark: Word = "",
    trigger: Word = "",
    after: Annotated[str, Query(max_length=60, pattern=r"^[0-9a-zA-Z-]*$")] = "",
) -> Response:
    context = page.context
    run_filter = RunFilter(
        status=status if status in set(Status) else None,
        model_id=int(model) if model else None,
        benchmark=benchmark or None,
        trigger=trigger or None,
    )
    waits = await reasons_to_wait(context)

    def read(session: Session) -> tuple[list[RunLine], dict[int, str], tuple[list[str], list[str]]]:
        rows = page_queries.runs(session, run_filter, limit=PAGE_SIZE + 1, after=after or None)
        titles = names_by_run(session, rows)
        lines = [run_line(row, titles[row.id], waits.get(row.id) or context.waiting_for(row.id)) for row in rows]
        return lines, model_names(session), page_queries.names_in_use(session)

    lines, names, (benchmarks, triggers) = await context.db.read(read)
    filters = {"status": status, "model": model, "benchmark": benchmark, "trigger": trigger}
    query_fields = {name: value for name, value in filters.items() if value}

    def link(**more: str) -> str:
        query = urlencode({**query_fields, **more})
        return f"{page.root}/runs?{query}" if query else f"{page.root}/runs"

    more = len(lines) > PAGE_SIZE
    return page.show(
        "runs/runs.html",
        runs=lines[:PAGE_SIZE],
        filters=run_filter,
        filtered=bool(query_fields),
        paged=bool(after),
        statuses=[(member.value, member.value) for member in Status],
        models=sorted(names.items(), key=lambda entry: entry[1]),
        benchmarks=[(name, name) for name in benchmarks],
        triggers=[(name, name) for name in triggers],
        first_link=link(),
        next_link=link(after=lines[PAGE_SIZE - 1].id) if more else None,
    )
