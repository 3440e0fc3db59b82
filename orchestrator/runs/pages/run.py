"""The page of a run and its actions. Files are downloaded through the API."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Path, Query
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.audit import queries as audit_queries
from orchestrator.commands.results import load
from orchestrator.commands.schemas import CommandOut
from orchestrator.commands.views import figure_views
from orchestrator.dashboard.overview import reasons_to_wait
from orchestrator.dashboard.shell import Page, page_router
from orchestrator.datasets.errors import PackDamaged, UnknownBenchmark
from orchestrator.datasets.packs.pack import Entry
from orchestrator.errors import Conflict
from orchestrator.gateway.ledger import report_queries as call_reports
from orchestrator.grading.service import Move
from orchestrator.http.context import Services
from orchestrator.http.policy import READ, RUN, Policy
from orchestrator.retention.queries import is_pinned
from orchestrator.runs import queries as run_queries
from orchestrator.runs.lifecycle import Status
from orchestrator.runs.queueing.plan import item_keys
from orchestrator.runs.reasons import Reason
from orchestrator.runs.reports import queries as page_queries
from orchestrator.runs.reports.exports.formats import WORDS, formats_of
from orchestrator.runs.reports.model_names import name_of_model
from orchestrator.runs.reports.queries import ItemLine, ItemVerdict
from orchestrator.runs.tables import Artefact, ContainerRun, Event
from orchestrator.runs.views.cockpit import BARS, Cockpit, Finished, cockpit, open_keys
from orchestrator.runs.views.run import Containers, Entries, RunPage, run_page
from runner.contract.events import Outcome
from runner.contract.run_spec import RunKind, call_key

router = page_router()

ITEMS_ON_A_PAGE = 100
LOG_LINES = 200
RATED_ITEMS = 300
"""The rate is that of at most so many of the newest items."""
TAIL_CHARS = 20_000
MOVES_SHOWN = 50
RunId = Annotated[str, Path(min_length=1, max_length=60)]


@dataclass(frozen=True)
class _RunData:
    """The rows that the page needs."""

    view: RunPage
    items: list[ItemLine]
    lines: list[Event]
    tail: str
    artefacts: list[Artefact]
    positions: dict[tuple[str, str, int], int]
    payers: list[str]
    cache_saving_usd: float
    pinned: bool
    cockpit: Cockpit


@router.get("/runs/{run_id}", policy=Policy(READ))
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
    filter_outcome = outcome if outcome in set(Outcome) else ""
    now, why = context.clock.now(), waits.get(run_id) or context.waiting_for(run_id)
    types = {name: context.settings.instance_type(name) for name in context.settings.instance_types}

    def read(session: Session) -> _RunData:
        run = run_queries.get(session, run_id)
        assert run is not None
        attempts = run_queries.attempts(session, run_id)
        verdicts = page_queries.verdicts(session, run_id)
        containers = Containers(run_queries.usage(session, run_id), types)
        model = name_of_model(session, run)
        view = run_page(
            run,
            model,
            attempts,
            verdicts,
            entries,
            containers=containers,
            now=now,
            why=why,
            cancelled_by=cancelled_by(session, run),
        )
        items = page_queries.items(session, run_id, limit=ITEMS_ON_A_PAGE + 1, after=after, outcome=filter_outcome or None)
        tail = (attempts[-1].log_tail or "")[-TAIL_CHARS:] if attempts else ""
        lines = list(page_queries.last_lines(session, run_id, LOG_LINES))
        look = _cockpit(session, run, verdicts, now)
        positions = {_key(verdict): verdict.position for verdict in verdicts} if run.kind == RunKind.GRADE else {}
        files, payers = list(run_queries.artefacts(session, run_id)), call_reports.payers(session, run_id)
        saving, pinned = call_reports.cache_saving_usd(session, run_id), is_pinned(session, run_id)
        return _RunData(view, items, lines, tail, files, positions, payers, saving, pinned, look)

    data = await context.db.read(read)
    items = data.items[:ITEMS_ON_A_PAGE]
    moves = await moves_of(context, data.view.run)
    is_command = row.kind == RunKind.COMMAND
    command = await context.db.read(lambda s: CommandOut.of(load(s, run_id))) if is_command else None
    return page.show(
        "runs/run.html",
        command=command,
        figures=figure_views(command.figures) if command else [],
        view=data.view,
        run=data.view.run,
        titles={entry.id: entry.title for entry in entries.values() if entry.title},
        items=[(item, entries.get((item.benchmark, item.problem_id))) for item in items],
        more=items[-1].position if len(data.items) > len(items) else None,
        paged=after >= 0,
        outcome=filter_outcome,
        lines=data.lines,
        tail=data.tail,
        payers=data.payers,
        cache_saving_usd=data.cache_saving_usd,
        look=data.cockpit,
        pinned=data.pinned,
        artefacts=data.artefacts,
        exports=[(form.value, WORDS[form]) for form in formats_of(row.kind)],
        moves=[(move, data.positions.get(_key(move))) for move in (moves or [])[:MOVES_SHOWN]],
        moved=None if moves is None else len(moves),
    )


def _cockpit(session: Session, run: ContainerRun, verdicts: list[ItemVerdict], now: datetime) -> Cockpit:
    """The ledger is asked for the few calls that are shown, by their keys."""
    done = [
        Finished((data["benchmark"], data["problem_id"], data["sample_index"]), data["outcome"], event.at)
        for event in page_queries.last_progress(session, run.id, RATED_ITEMS)
        if (data := event.data).keys() >= {"benchmark", "problem_id", "sample_index", "outcome"}
    ]
    live = run.status == Status.RUNNING and run.kind in (RunKind.BENCHMARK, RunKind.GRADE)
    keys = open_keys(item_keys(run), map(_key, verdicts), run.concurrency) if live else []
    wanted = [call_key(*key) for key in [*keys, *(item.key for item in done[-BARS:])]]
    return cockpit(run, keys, {row.call_key: row for row in page_queries.calls(session, run.id, wanted)}, done, now)


@router.post("/runs/{run_id}/cancel", policy=Policy(RUN))
async def cancel_run(page: Page, run_id: RunId) -> Response:
    await page.context.runs.cancel(run_id)
    page.context.signals.look()
    return page.go(f"/runs/{run_id}")


@router.post("/runs/{run_id}/retry", policy=Policy(RUN, spends=True))
async def retry_run(page: Page, run_id: RunId) -> Response:
    return page.go(f"/runs/{await page.context.runs.retry(run_id)}")


@router.post("/runs/{run_id}/regrade", policy=Policy(RUN))
async def regrade_run(page: Page, run_id: RunId) -> Response:
    """Judge the stored answers again in a new run, whose page shows the verdicts that changed."""
    again = await page.context.grades.regrade(run_id)
    return page.go(f"/runs/{again.run_id}")


def cancelled_by(session: Session, run: ContainerRun) -> str | None:
    """The name of who cancelled the run, from the audit log; None if nobody did, or the entry was pruned."""
    if run.reason != Reason.CANCELLED_BY_USER:
        return None
    entries = audit_queries.page(session, limit=1, action="cancel", object_id=run.id, refused=False)
    return entries[0].actor if entries and entries[0].actor else None


def _key(item: ItemVerdict | Move) -> tuple[str, str, int]:
    return item.benchmark, item.problem_id, item.sample_index


async def moves_of(context: Services, run: ContainerRun) -> list[Move] | None:
    """The verdicts that changed, if the run is a regrade; else None."""
    if run.kind != RunKind.GRADE or run.retry_of is None or not run.items_done:
        return None
    try:
        return await context.grades.moves(run.id)
    except Conflict:  # a retry of a run that graded a file
        return None


async def entries_of(context: Services, run: ContainerRun) -> Entries:
    """What the datasets know of the run's problems. A missing or damaged dataset contributes nothing."""

    def look() -> Entries:
        entries: dict[tuple[str, str], Entry] = {}
        for name in run.benchmarks:
            try:
                entries |= {(name, entry.id): entry for entry in context.catalogue.entries(name)}
            except (UnknownBenchmark, PackDamaged):
                continue
        return entries

    return await asyncio.to_thread(look)
