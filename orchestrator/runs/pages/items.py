"""The page of an item, and its full texts as plain text only, so that a browser never interprets what a model wrote."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Path, Query
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.dashboard.shell import Frame, Page, page_router
from orchestrator.datasets.errors import PackDamaged, UnknownBenchmark, UnknownProblem
from orchestrator.errors import Conflict, NotFound
from orchestrator.http.context import Services
from orchestrator.http.policy import READ, RUN, Policy
from orchestrator.runs import item_queries
from orchestrator.runs.intake.bounds import stored_item
from orchestrator.runs.pages.problem_strip import StripRow, problem_strip
from orchestrator.runs.pages.run import RunId, entries_of
from orchestrator.runs.queueing.plan import CPU_LIMITS_S, execution_limits
from orchestrator.runs.reports import queries as page_queries
from orchestrator.runs.reports.model_names import name_of_model
from orchestrator.runs.schemas import RunCreate
from orchestrator.runs.tables import ContainerRun, ItemRow
from orchestrator.runs.views.items import TEXTS, ItemPage, item_page
from orchestrator.runs.views.statement import MOST_BYTES, statement
from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits, RunKind

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

    def read(session: Session) -> _ItemData:
        row = _row(session, run_id, position)
        item = stored_item(row.data, row.outcome)
        calls = {
            row.call_key: row
            for row in page_queries.calls(session, run_id, [call.call_key for call in (*item.calls, *item.judgements)])
        }
        beside = page_queries.neighbours(session, run_id, position, filter_outcome or None)
        failures = page_queries.neighbours(session, run_id, position, None, failed=True)
        strip = problem_strip(session, row.benchmark, row.problem_id, run_id, position)
        return _ItemData(item_page(item, calls, test), row, name_of_model(session, run) or "", beside, failures, strip)

    data = await context.db.read(read)
    view, row = data.view, data.row
    entries = await entries_of(context, run)
    record = await asyncio.to_thread(_record, context, run, row)
    return page.show(
        "runs/item.html" if view.item.repeat is None else "commands/repeat.html",
        view=view,
        item=view.item,
        row=row,
        run=run,
        model=data.model,
        entry=entries.get((row.benchmark, row.problem_id)),
        before=data.beside[0],
        after=data.beside[1],
        failed_before=data.failures[0],
        failed_after=data.failures[1],
        strip=data.strip,
        statement=await asyncio.to_thread(statement, record, view.item.prompt),
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


@router.post("/runs/{run_id}/items/{position}/again", policy=Policy(RUN, spends=True))
async def ask_again(page: Page, run_id: RunId, position: Position) -> Response:
    """A new run of this problem alone, with the settings of this run; earlier answers are not used."""
    run = await page.context.runs.get(run_id)
    row = await page.context.db.read(lambda s: _row(s, run_id, position))
    if run.kind != RunKind.BENCHMARK or run.model_id is None:
        raise Conflict("Only an item of a benchmark run can be run again.")
    body = RunCreate(
        model_id=run.model_id,
        benchmarks=[row.benchmark],
        ids=[row.problem_id],
        samples_per_problem=run.samples_per_problem,
        budget_usd=run.budget_usd,
        reuse_answers=False,
        instance_type=run.instance_type if run.instance_type in page.context.settings.instance_types else None,
    )
    return page.go(f"/runs/{await page.context.runs.create(body.request(reuse_answers=False))}")


@dataclass(frozen=True)
class _ItemData:
    """The rows that the page needs."""

    view: ItemPage
    row: ItemRow
    model: str
    beside: tuple[int | None, int | None]
    failures: tuple[int | None, int | None]
    strip: list[StripRow]


def _record(context: Services, run: ContainerRun, row: ItemRow) -> dict[str, Any] | None:
    """The problem's record, if its dataset is still there as the run used it."""
    digests = [part.pack_digest for part in run.task.benchmarks if part.name == row.benchmark]
    try:
        return context.catalogue.small_record(row.benchmark, digests[0], row.problem_id, MOST_BYTES) if digests else None
    except (UnknownBenchmark, UnknownProblem, PackDamaged):
        return None


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
