"""REST for what machines cost, beside what models cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from fastapi import Query
from pydantic import Field
from sqlmodel import Session

from orchestrator.costs import queries as machine_queries
from orchestrator.http.context import Context
from orchestrator.http.policy import READ, Policy, Router
from orchestrator.http.schemas import Answer
from orchestrator.retention import queries as retention_queries
from orchestrator.runs.reports.machine_cost import Rates
from orchestrator.runs.warm_pool import queries as pool_queries
from orchestrator.settings import Settings

router = Router(tags=["runs"])


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


class IdleCostOut(Answer):
    """What runners of one instance type used on one day while they stood ready, apart from any run."""

    day: str
    instance_type: str
    ready_s: float = Field(description="How long they stood ready, all together.")
    vcpu_s: float
    gib_s: float
    cost_usd: float


class MachineCostsOut(Answer):
    items: list[MachineCostOut]
    idle: list[IdleCostOut] = Field(description="Runners that stood ready, in no item above; of the whole installation.")
    idle_cost_usd: float
    vcpu_hour_usd: float
    gib_hour_usd: float


class MachineUse(NamedTuple):
    key: str
    runs: int
    vcpu_s: float
    gib_s: float
    throttled_s: float


def with_deleted(there: Sequence[Any], deleted: Sequence[Any], *, newest_first: bool) -> list[MachineUse]:
    """What runs used, those that were deleted since included: what was paid for stays counted."""
    sums: dict[str, MachineUse] = {}
    for row in (*there, *deleted):
        before = sums.get(row.key, MachineUse(row.key, 0, 0.0, 0.0, 0.0))
        added = (mine + theirs for mine, theirs in zip(before[1:], tuple(row)[1:5], strict=True))
        sums[row.key] = MachineUse(row.key, *added)
    return sorted(sums.values(), key=lambda each: each.key if newest_first else each.vcpu_s, reverse=True)


def rates_of(settings: Settings) -> Rates:
    return Rates(settings.vcpu_hour_usd, settings.gib_hour_usd)


@router.get("/api/machine-costs", policy=Policy(READ))
async def machine_costs(
    context: Context,
    by: MachineBy = MachineBy.DAY,
    days: Annotated[int, Query(ge=1, le=3660)] = 30,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> MachineCostsOut:
    """Processor and memory that runs used in the last days, by the kernel's figures, and what that costs; beside it what
    runners used that stood ready for a run."""
    since, rates = context.clock.now() - timedelta(days=days), rates_of(context.settings)

    def read(session: Session) -> list[MachineUse]:
        there = machine_queries.used(session, by.value, since, limit)
        deleted = retention_queries.used_by_deleted(session, by.value, since)
        return with_deleted(there, deleted, newest_first=by is MachineBy.DAY)[:limit]

    used = await context.db.read(read)
    items = [MachineCostOut(**each._asdict(), cost_usd=rates.cost(each.vcpu_s, each.gib_s)) for each in used]
    ready = await context.db.read(lambda session: pool_queries.idle_since(session, since.date().isoformat()))
    idle = [
        IdleCostOut(
            day=row.day,
            instance_type=row.instance_type,
            ready_s=row.ready_s,
            vcpu_s=row.vcpu_s,
            gib_s=row.gib_s,
            cost_usd=rates.cost(row.vcpu_s, row.gib_s),
        )
        for row in ready
    ]
    return MachineCostsOut(
        items=items,
        idle=idle,
        idle_cost_usd=sum(each.cost_usd for each in idle),
        vcpu_hour_usd=rates.vcpu_hour_usd,
        gib_hour_usd=rates.gib_hour_usd,
    )
