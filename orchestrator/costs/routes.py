"""REST for costs: what a run will cost before it starts, and what runs have cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

from fastapi import Query
from sqlmodel import Session

from orchestrator.costs.schemas import By, CostOut, CostsOut, MachineBy, MachineCostsOut, QuoteOut
from orchestrator.costs.views import machine_costs_view, quote_view
from orchestrator.db.workspaces import workspace_of
from orchestrator.gateway.ledger import report_queries as call_reports
from orchestrator.gateway.ledger import spending_queries
from orchestrator.http.context import Context
from orchestrator.http.policy import READ, RUN, Audit, Policy, Router
from orchestrator.runs.reports.model_cost import ModelCost
from orchestrator.runs.schemas import RunCreate

router = Router(tags=["money"])
machines = Router(tags=["runs"])


@router.post("/api/quotes", policy=Policy(RUN, audit=Audit.REFUSALS))
async def make_quote(body: RunCreate, context: Context) -> QuoteOut:
    """Estimate the cost and duration of a run. Takes the body of a new run; starts nothing."""
    return await quote_view(context, body)


@router.get("/api/costs", policy=Policy(READ))
async def list_costs(context: Context, by: By = By.DAY, days: Annotated[int, Query(ge=1, le=3660)] = 30) -> CostsOut:
    """Cost of calls in the last days (UTC), per day and model or per model. Lost sends may have been billed."""
    now = context.clock.now()
    since = (now.date() - timedelta(days=days - 1)).isoformat()

    def read(session: Session) -> tuple[Sequence[Any], float]:
        rows = call_reports.spending(session, since=since, by_day=by is By.DAY)
        return rows, spending_queries.spent(session.connection(), now, workspace_of(session), None)

    rows, today = await context.db.read(read)
    items = [
        CostOut(
            day=row.day if by is By.DAY else None,
            model=row.model,
            calls=row.calls,
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
            cost_usd=ModelCost(row.settled_usd, row.unpriced_calls).usd,
            known_cost_usd=row.settled_usd,
            unpriced_calls=row.unpriced_calls,
            lost_usd=row.lost_usd,
            lost_sends=row.lost_sends,
        )
        for row in rows
    ]
    unpriced = sum(item.unpriced_calls for item in items)
    daily = context.settings.daily_budget_usd
    return CostsOut(items=items, today_usd=today, unpriced_calls=unpriced, daily_budget_usd=daily)


@machines.get("/api/machine-costs", policy=Policy(READ))
async def machine_costs(
    context: Context,
    by: MachineBy = MachineBy.DAY,
    days: Annotated[int, Query(ge=1, le=3660)] = 30,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> MachineCostsOut:
    """CPU and memory that runs used in the last days, as the kernel measured them, and their cost; separately, the usage of
    warm runners while they waited."""
    return await machine_costs_view(context, by=by, days=days, limit=limit)
