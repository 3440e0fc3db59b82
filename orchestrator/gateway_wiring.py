"""Joins the gateway to the rest: who a run token belongs to, where calls are kept, what the demo models say."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal

from sqlmodel import Session

from orchestrator.clock import Clock
from orchestrator.db import model_queries, run_queries
from orchestrator.db.session import Database
from orchestrator.db.tables import ContainerRun, LlmModel
from orchestrator.gateway import demo_answers
from orchestrator.gateway.assembly import open_gateway as assemble
from orchestrator.gateway.context import RunContext
from orchestrator.gateway.database_ledger import DatabaseLedger
from orchestrator.gateway.desk import CallDesk
from orchestrator.gateway.prices import Prices, nusd
from orchestrator.gateway.router import GatewayDeps
from orchestrator.live import Live
from orchestrator.runner_api.callers import attempt_of
from orchestrator.runs.lifecycle import TERMINAL, Status
from orchestrator.settings import Settings


@asynccontextmanager
async def open_gateway(settings: Settings, db: Database, clock: Clock, owner: str) -> AsyncIterator[GatewayDeps]:
    async def authenticate(token: str) -> RunContext | None:
        attempt = await attempt_of(db, token)
        if attempt is None:
            return None

        def read(session: Session) -> tuple[ContainerRun, LlmModel] | None:
            run = run_queries.get(session, attempt.run_id)
            model = model_queries.get(session, run.model_id) if run else None
            return (run, model) if run is not None and model is not None else None

        found = await db.read(read)
        if found is None or found[0].attempt != attempt.number or found[0].status != Status.RUNNING:
            return None
        run, model = found
        return RunContext(
            run_id=run.id,
            attempt=attempt.number,
            slug=model.slug,
            provider=model.provider,
            model=model.name,
            prices=prices_of(model),
            budget_nusd=None if run.budget_usd is None else nusd(run.budget_usd),
            request_timeout_s=float(model.params.get("request_timeout_s") or 600.0),
        )

    top = 2 * settings.demo_latency_s
    async with assemble(
        authenticate=authenticate,
        ledger=DatabaseLedger(db, clock, owner),
        env=os.environ,
        demo_load=demo_answers.load,
        clock=clock,
        rng=random.Random(os.urandom(8)),
        demo_latency_s=(min(0.005, top), top),
    ) as deps:
        yield deps


async def abandon_ended(live: Live, desk: CallDesk) -> None:
    """Let go of calls that still wait for their turn when their run ends; runs until it is cancelled."""
    async for event in live.events(after=None):
        if event.run_id is not None and event.type == "transition" and event.data.get("status") in TERMINAL:
            await desk.abandon(event.run_id)


def prices_of(model: LlmModel) -> Prices | None:
    """None when a price is missing: what it costs is then unknown, and a budget cannot be promised."""
    if model.input_price is None or model.output_price is None:
        return None
    cached = model.cached_input_price
    return Prices(
        input_per_mtok=Decimal(str(model.input_price)),
        output_per_mtok=Decimal(str(model.output_price)),
        cached_input_per_mtok=None if cached is None else Decimal(str(cached)),
        entered_on=model.prices_entered_at.date() if model.prices_entered_at else None,
    )
