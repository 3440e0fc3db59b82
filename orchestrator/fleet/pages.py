"""The fleet page: engine, capacity, containers, queue and disk."""

from __future__ import annotations

import asyncio
import shutil
from typing import Any

from sqlmodel import Session
from starlette.responses import Response

from orchestrator.costs import queries as cost_queries
from orchestrator.costs.views import machine_costs_view
from orchestrator.dashboard.shell import Page, page_router
from orchestrator.dashboard.utilisation import STEP, STEPS, machine_cost_per_day, vcpu_over_time
from orchestrator.dashboard.week import days_until, spend_per_day
from orchestrator.fleet.views import agents_view, fleet_view
from orchestrator.gateway.ledger import report_queries as call_reports
from orchestrator.http.policy import READ, Policy
from orchestrator.runs.reports import queries as page_queries
from orchestrator.runs.reports.model_names import names_by_run
from orchestrator.runs.reports.queries import RunFilter
from orchestrator.runs.views.runs import title_of

router = page_router()


@router.get("/fleet", policy=Policy(READ))
async def fleet_page(page: Page) -> Response:
    context = page.context
    fleet = await fleet_view(context)
    disk = await asyncio.to_thread(shutil.disk_usage, context.settings.data.absolute())
    waiting = {each.run_id for each in fleet.waiting} | {each.run_id for each in fleet.containers if each.run_id}
    names = await context.db.read(lambda s: _titles(s, waiting)) if waiting else {}
    others = await agents_view(context)
    used = await machine_costs_view(context, days=7)
    now = context.clock.now()
    first = days_until(now.date())[0]

    def over_time(session: Session) -> tuple[list[Any], list[Any]]:
        spans = cost_queries.spans(session, now - STEP * STEPS)
        return list(spans), list(call_reports.spending(session, since=first, by_day=True))

    spans, spent = await context.db.read(over_time)

    def vcpu_of(name: str) -> float:
        known = context.settings.instance_types
        return context.settings.instance_type(name).vcpu if name in known else 1.0

    figures = [
        vcpu_over_time([tuple(span) for span in spans], vcpu_of, now, fleet.capacity.vcpu),
        spend_per_day({(row.day, row.model): row.settled_usd + row.lost_usd for row in spent}, now.date()),
        machine_cost_per_day({it.key: it.cost_usd for it in used.items if it.cost_usd}),
    ]
    return page.show(
        "fleet/fleet.html",
        fleet=fleet,
        disk=disk,
        names=names,
        agents=others,
        costs=used.items,
        idle=used.idle,
        figures=[figure for figure in figures if figure is not None],
    )


def _titles(session: Session, run_ids: set[str]) -> dict[str, str]:
    rows = [row for row in page_queries.runs(session, RunFilter(), limit=500) if row.id in run_ids]
    models = names_by_run(session, rows)
    return {row.id: title_of(row, models[row.id]) for row in rows}
