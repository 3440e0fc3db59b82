"""Two to six runs side by side. The address contains all of them, so a comparison can be shared."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.commands.views import compare_runs, ratio_rows
from orchestrator.dashboard.shell import Page, page_router
from orchestrator.http.policy import READ, Policy
from orchestrator.runs.pages.run import entries_of
from orchestrator.runs.reports import queries as page_queries
from orchestrator.runs.reports.model_names import names_by_run
from orchestrator.runs.reports.queries import CallSums, RunFilter
from orchestrator.runs.views.compare import KINDS, Comparison, compare
from orchestrator.runs.views.deltas import by_difficulty, usage_view, why_unsuitable
from orchestrator.runs.views.runs import RunLine, run_line
from runner.contract.run_spec import RunKind

router = page_router()

CHOICES = 100
MOST = 6
ON_A_PAGE = 100
RunIds = Annotated[list[Annotated[str, Query(max_length=60)]] | None, Query(max_length=20)]


@router.get("/compare", policy=Policy(READ))
async def compare_page(
    page: Page,
    run: RunIds = None,
    baseline: Annotated[str, Query(max_length=60)] = "",
    kind: Annotated[str, Query(max_length=10)] = "",
    start: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
) -> Response:
    """`run` is given twice or more. All are compared with `baseline`, or else with the oldest; "fixed" items pass in another
    run but not there.
    """
    given = [run_id for run_id in (baseline, *(run or [])) if run_id]
    requested = list(dict.fromkeys(given))
    same = len(requested) < len(given)
    rows = [await page.context.runs.get(run_id) for run_id in requested[:MOST]]
    if not baseline:
        rows.sort(key=lambda row: row.created_at)  # runs of one instant stay in the order of the address
    run_ids = [row.id for row in rows]
    if len(rows) > 1 and all(row.kind == RunKind.COMMAND for row in rows):
        compared = await compare_runs(page.context, run=run_ids)
        return page.show("commands/compare_commands.html", found=compared, rows=ratio_rows(compared))

    def read(session: Session) -> tuple[list[RunLine], list[tuple[RunLine, str]], Comparison | None, dict[str, CallSums]]:
        latest = page_queries.runs(session, RunFilter(), limit=CHOICES)
        names = names_by_run(session, [*latest, *rows])
        comparison = compare([page_queries.verdicts(session, row.id) for row in rows]) if len(rows) > 1 else None
        lines = [run_line(row, names[row.id]) for row in rows]
        choices = [(run_line(row, names[row.id]), why_unsuitable(row, rows[0] if rows else None)) for row in latest]
        return lines, choices, comparison, page_queries.call_sums(session, run_ids)

    lines, choices, comparison, calls = await page.context.db.read(read)
    shown_kind = kind if kind in KINDS else ""
    items = comparison.of_kind(shown_kind) if comparison else []

    def link(runs: list[str], **more: object) -> str:
        named = [("baseline" if index == 0 else "run", run_id) for index, run_id in enumerate(runs)]
        query = urlencode([*named, *((name, str(value)) for name, value in more.items() if value)])
        return f"{page.root}/compare?{query}"

    entries = await entries_of(page.context, rows[0]) if rows else {}
    return page.show(
        "runs/compare.html",
        lines=lines,
        choices=choices,
        found=comparison,
        kind=shown_kind,
        kinds=[(name, link(run_ids, kind=name)) for name in KINDS],
        all_link=link(run_ids),
        items=items[start : start + ON_A_PAGE],
        start=start,
        count=len(items),
        before_link=link(run_ids, kind=shown_kind, start=max(0, start - ON_A_PAGE)) if start else None,
        next_link=link(run_ids, kind=shown_kind, start=start + ON_A_PAGE) if len(items) > start + ON_A_PAGE else None,
        without=[link([run_id for run_id in run_ids if run_id != line.id]) for line in lines],
        first=[link([line.id, *(run_id for run_id in run_ids if run_id != line.id)]) for line in lines],
        entries=entries,
        groups=by_difficulty(comparison.items, entries) if comparison else [],
        usage=[usage_view(row, calls.get(row.id)) for row in rows],
        one_model=len({row.model_id for row in rows}) == 1,
        too_many=len(requested) > MOST,
        same=same,
        most=MOST,
    )
