"""The page of an item, and its full texts as plain text only, so that a browser never interprets what a model wrote."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.dashboard.shell import Frame, Page, page_router
from orchestrator.errors import NotFound
from orchestrator.http.policy import READ, Policy
from orchestrator.runs import item_queries
from orchestrator.runs.intake.bounds import stored_item
from orchestrator.runs.pages.run import RunId, entries_of
from orchestrator.runs.plan import CPU_LIMITS_S, execution_limits
from orchestrator.runs.reports import queries as page_queries
from orchestrator.runs.reports.model_names import name_of_model
from orchestrator.runs.tables import ContainerRun, ItemRow
from orchestrator.runs.views.items import TEXTS, ItemPage, item_page
from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits

router = page_router()

Position = Annotated[int, Path(ge=0, le=2**31 - 1)]


@router.get("/runs/{run_id}/items/{position}", policy=Policy(READ))
async def show_item(
    page: Page,
    run_id: RunId,
    position: Position,
    outcome: Annotated[str, Query(max_length=30)] = "",
    test: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
) -> Response:
    """`outcome` filters the items to page through; `test` is the first failed test to show."""
    context = page.context
    run = await context.runs.get(run_id)
    filter_outcome = outcome if outcome in set(Outcome) else ""

    def read(session: Session) -> tuple[ItemPage, ItemRow, str, tuple[int | None, int | None]]:
        row = _row(session, run_id, position)
        item = stored_item(row.data, row.outcome)
        calls = {
            row.call_key: row
            for row in page_queries.calls(session, run_id, [call.call_key for call in (*item.calls, *item.judgements)])
        }
        beside = page_queries.neighbours(session, run_id, position, filter_outcome or None)
        return item_page(item, calls, test), row, name_of_model(session, run) or "", beside

    view, row, model, (before, after) = await context.db.read(read)
    entries = await entries_of(context, run)
    return page.show(
        "runs/item.html" if view.item.repeat is None else "commands/repeat.html",
        view=view,
        item=view.item,
        row=row,
        run=run,
        model=model,
        entry=entries.get((row.benchmark, row.problem_id)),
        before=before,
        after=after,
        outcome=filter_outcome,
        limits=_limits(page, run, row.benchmark),
    )


@router.get("/runs/{run_id}/items/{position}/{text}", policy=Policy(READ))
async def item_text(page: Page, run_id: RunId, position: Position, text: str) -> Response:
    """One complete text of an item."""
    if text not in TEXTS:
        raise NotFound(f"an item has no text {text!r}; it has {', '.join(TEXTS)}")
    await page.context.runs.get(run_id)
    row = await page.context.db.read(lambda s: _row(s, run_id, position))
    content = str(row.data.get(text) or "").encode("utf-8", "replace")
    headers = {"content-security-policy": "default-src 'none'; sandbox", "cache-control": "no-store"}
    return Response(content, media_type="text/plain; charset=utf-8", headers=headers)


def _row(session: Session, run_id: str, position: int) -> ItemRow:
    row = item_queries.at(session, run_id, position)
    if row is None:
        raise NotFound(f"Item {position + 1} of this run has no result.")
    return row


def _limits(page: Frame, run: ContainerRun, benchmark: str) -> ExecutionLimits | None:
    """The limits of one test, if the settings still have the run's instance type."""
    settings = page.context.settings
    if run.instance_type not in settings.instance_types:
        return None
    limits = execution_limits(settings.instance_type(run.instance_type))
    limits_of_pack = [part.cpu_s for part in run.task.benchmarks if part.name == benchmark]
    cpu_s = next(iter(limits_of_pack), None) or CPU_LIMITS_S.get(benchmark) or limits.cpu_s
    return limits.model_copy(update={"cpu_s": cpu_s})
