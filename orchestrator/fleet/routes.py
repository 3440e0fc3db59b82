"""REST route for the fleet: engine, capacity, running containers, and why runs wait."""

from __future__ import annotations

from orchestrator.fleet.schemas import (
    FleetOut,
)
from orchestrator.fleet.views import fleet_view
from orchestrator.http.context import Context
from orchestrator.http.policy import READ, Policy, Router

router = Router(prefix="/api/fleet", tags=["fleet"])


@router.get("", policy=Policy(READ))
async def get_fleet(context: Context) -> FleetOut:
    return await fleet_view(context)
