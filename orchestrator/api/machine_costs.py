"""REST for what machines cost, beside what models cost."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Query

from orchestrator.api.context import Context
from orchestrator.api.schemas import Answer
from orchestrator.db import machine_queries
from orchestrator.runs.machine_cost import Rates
from orchestrator.settings import Settings

router = APIRouter(tags=["runs"])


class MachineBy(StrEnum):
    RUN = "run"
    MODEL = "model"
    BATCH = "batch"
    SCHEDULE = "schedule"
    DAY = "day"


class MachineCostOut(Answer):
    key: str
    runs: int
    vcpu_s: float
    gib_s: float
    throttled_s: float
    cost_usd: float


class MachineCostsOut(Answer):
    items: list[MachineCostOut]
    vcpu_hour_usd: float
    gib_hour_usd: float


def rates_of(settings: Settings) -> Rates:
    return Rates(settings.vcpu_hour_usd, settings.gib_hour_usd)


@router.get("/api/machine-costs")
async def machine_costs(
    context: Context,
    by: MachineBy = MachineBy.DAY,
    days: Annotated[int, Query(ge=1, le=3660)] = 30,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> MachineCostsOut:
    """Processor and memory that runs used in the last days, by the kernel's figures, and what that costs."""
    since, rates = context.clock.now() - timedelta(days=days), rates_of(context.settings)
    rows = await context.db.read(lambda session: machine_queries.used(session, by.value, since, limit))
    items = [
        MachineCostOut(
            key=row.key,
            runs=row.runs,
            vcpu_s=row.vcpu_s,
            gib_s=row.gib_s,
            throttled_s=row.throttled_s,
            cost_usd=rates.cost(row.vcpu_s, row.gib_s),
        )
        for row in rows
    ]
    return MachineCostsOut(items=items, vcpu_hour_usd=rates.vcpu_hour_usd, gib_hour_usd=rates.gib_hour_usd)
