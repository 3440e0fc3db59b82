"""The fleet: engine, capacity, containers, queue and disk."""

from __future__ import annotations

import asyncio
import shutil

from starlette.responses import Response

from orchestrator.api.agents import list_agents
from orchestrator.api.fleet import get_fleet
from orchestrator.api.machine_costs import machine_costs
from orchestrator.dashboard.frame import Page, page_router
from orchestrator.db import model_queries, page_queries
from orchestrator.db.page_queries import RunFilter

router = page_router()


@router.get("/fleet")
async def fleet_page(page: Page) -> Response:
    context = page.context
    fleet = await get_fleet(context)
    disk = await asyncio.to_thread(shutil.disk_usage, context.settings.data.absolute())
    waiting = {each.run_id for each in fleet.waiting} | {each.run_id for each in fleet.containers if each.run_id}
    rows = await context.db.read(lambda s: page_queries.runs(s, RunFilter(), limit=500)) if waiting else []
    models = await context.db.read(lambda s: model_queries.by_ids(s, {row.model_id for row in rows if row.id in waiting}))
    names = {row.id: models[row.model_id].slug for row in rows if row.id in waiting}
    others = (await list_agents(context)).items
    costs = (await machine_costs(context, days=7)).items
    return page.show("fleet.html", fleet=fleet, disk=disk, names=names, agents=others, costs=costs)
