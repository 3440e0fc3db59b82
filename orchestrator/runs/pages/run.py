"""The page of a run and its actions. Files are downloaded through the API."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated

from fastapi import Path, Query
from sqlmodel import Session
from starlette.responses import Response

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
from orchestrator.runs import page_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.model_names import name_of_model
from orchestrator.runs.page_queries import ItemLine, Verdict
from orchestrator.runs.tables import Artefact, ContainerRun, Event
from orchestrator.runs.views.run import Containers, Entries, RunPage, run_page
from runner.contract.events import Outcome
from runner.contract.run_spec import RunKind

router = page_router()

ITEMS_ON_A_PAGE = 100
LOG_LINES = 200
TAIL_CHARS = 20_000
MOVES_SHOWN = 50
RunId = Annotated[str, Path(min_length=1, max_length=60)]


@dataclass(frozen=True)
class _Read:
    """The rows that the page needs."""

    view: RunPage
    items: list[ItemLine]
    lines: list[Event]
    tail: str
    artefacts: list[Artefact]
    positions: dict[tuple[str, str, int], int]
    payers: list[str]
    pinned: bool


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
    wanted = outcome if outcome in set(Outcome) else ""
    now, why = context.clock.now(), waits.get(run_id) or context.waiting_for(run_id)
    types = {name: context.settings.instance_type(name) for name in context.settings.instance_types}

    def read(session: Session) -> _Read:
        run = run_queries.get(session, run_id)
        assert run is not None
        attempts = run_queries.attempts(session, run_id)
        verdicts = page_queries.verdicts(session, run_id)
        containers = Containers(run_queries.usage(session, run_id), types)
        model = name_of_model(session, run)
        view = run_page(run, model, attempts, verdicts, entries, containers=containers, now=now, why=why)
        items = page_queries.items(session, run_id, limit=ITEMS_ON_A_PAGE + 1, after=after, outcome=wanted or None)
        tail = (attempts[-1].log_tail or "")[-TAIL_CHARS:] if attempts else ""
        lines = list(page_queries.last_lines(session, run_id, LOG_LINES))
        positions = {_key(each): each.position for each in verdicts} if run.kind == RunKind.GRADE else {}
        files, payers = list(run_queries.artefacts(session, run_id)), call_reports.payers(session, run_id)
        return _Read(view, items, lines, tail, files, positions, payers, is_pinned(session, run_id))

    found = await context.db.read(read)
    shown = found.items[:ITEMS_ON_A_PAGE]
    moves = await moves_of(context, found.view.run)
    is_command = row.kind == RunKind.COMMAND
    command = await context.db.read(lambda s: CommandOut.of(load(s, run_id))) if is_command else None
    return page.show(
        "runs/run.html",
        command=command,
        figures=figure_views(command.figures) if command else [],
        view=found.view,
        run=found.view.run,
        items=[(item, entries.get((item.benchmark, item.problem_id))) for item in shown],
        more=shown[-1].position if len(found.items) > len(shown) else None,
        paged=after >= 0,
        outcome=wanted,
        lines=found.lines,
        tail=found.tail,
        payers=found.payers,
        pinned=found.pinned,
        artefacts=found.artefacts,
        moves=[(move, found.positions.get(_key(move))) for move in (moves or [])[:MOVES_SHOWN]],
        moved=None if moves is None else len(moves),
    )


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


def _key(item: Verdict | Move) -> tuple[str, str, int]:
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
        found: dict[tuple[str, str], Entry] = {}
        for name in run.benchmarks:
            try:
                found |= {(name, entry.id): entry for entry in context.catalogue.entries(name)}
            except (UnknownBenchmark, PackDamaged):
                continue
        return found

    return await asyncio.to_thread(look)
