"""Two runs side by side. The address names both, so a comparison can be passed on."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.dashboard.frame import Page, page_router
from orchestrator.dashboard.pages.run import entries_of
from orchestrator.dashboard.views.compare import KINDS, Comparison, compare
from orchestrator.dashboard.views.runs import RunLine, run_line
from orchestrator.db import model_queries, page_queries, run_queries
from orchestrator.db.page_queries import RunFilter

router = page_router()

CHOICES = 100
SHOWN = 500
RunIds = Annotated[list[Annotated[str, Query(max_length=60)]] | None, Query(max_length=20)]


@router.get("/compare")
async def compare_page(page: Page, run: RunIds = None, kind: Annotated[str, Query(max_length=10)] = "") -> Response:
    """`run` twice: the earlier or weaker one first; what the second passes and the first does not is "fixed"."""
    chosen = [each for each in (run or []) if each][:2]
    rows = [await page.context.runs.get(run_id) for run_id in chosen]

    def read(session: Session) -> tuple[list[RunLine], list[RunLine], Comparison | None]:
        latest = page_queries.runs(session, RunFilter(), limit=CHOICES)
        known = model_queries.by_ids(session, {row.model_id for row in [*latest, *rows]})
        found = [row for run_id in chosen if (row := run_queries.get(session, run_id)) is not None]
        both = None
        if len(found) == 2:
            both = compare(page_queries.items(session, found[0].id), page_queries.items(session, found[1].id))
        lines = [run_line(row, known[row.model_id].slug) for row in found]
        return lines, [run_line(row, known[row.model_id].slug) for row in latest if row.items_done], both

    lines, choices, both = await page.context.db.read(read)
    wanted = kind if kind in KINDS else ""
    items = [item for item in both.items if not wanted or item.kind == wanted] if both else []
    items.sort(key=lambda item: (KINDS.index(item.kind), item.first.position))
    return page.show(
        "compare.html",
        lines=lines,
        choices=choices,
        both=both,
        kind=wanted,
        items=items[:SHOWN],
        not_shown=max(0, len(items) - SHOWN),
        entries=await entries_of(page.context, rows[0]) if rows else {},
        too_many=len(run or []) > 2,
    )
