"""Connects the gateway to the rest of the service: run tokens, the ledger, keys and the demo models."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import structlog
from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.gateway.attempt import Sleep
from orchestrator.gateway.calls import DayCap, RunContext
from orchestrator.gateway.coordinator import CallCoordinator
from orchestrator.gateway.demo import answers as demo_answers
from orchestrator.gateway.demo.provider import DEMO_PROVIDER, DemoAnswers, DemoUpstream
from orchestrator.gateway.edge.router import Callers, GatewayDeps
from orchestrator.gateway.ledger import queries as call_queries
from orchestrator.gateway.ledger.database import DatabaseLedger
from orchestrator.gateway.ledger.ledger import Ledger, LedgerUnavailable, Recovery
from orchestrator.gateway.ledger.prices import Prices, nusd
from orchestrator.gateway.pacing.retry import RetryPolicy
from orchestrator.gateway.upstream.credentials import KeySource
from orchestrator.gateway.upstream.http_upstream import HttpUpstream
from orchestrator.gateway.upstream.port import Upstream
from orchestrator.gateway.upstream.providers import providers_from_env
from orchestrator.limits.service import caps
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.outbound.tls import tls_context
from orchestrator.provider_keys.service import Choice, ProviderKeys
from orchestrator.runs.lifecycle import TERMINAL
from orchestrator.runs.live.feed import Live
from orchestrator.runs.plan import PlannedCalls, PositionCache, planned_calls
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import same_token


@asynccontextmanager
async def open_gateway(
    settings: Settings, db: Database, clock: Clock, owner: str, keys: ProviderKeys, positions: PositionCache
) -> AsyncIterator[GatewayDeps]:
    of_all = () if settings.daily_budget_usd is None else (DayCap(nusd(settings.daily_budget_usd)),)

    async def find(digest: str) -> RunContext | None:
        def read(session: Session) -> RunContext | None:
            row = call_queries.caller(session, digest)
            if row is None or not same_token(row.token_hash, digest):
                return None
            since = clock.now() - timedelta(days=settings.reuse_answers_days) if row.reuse_answers else None
            day_caps = (*of_all, *caps(session, row.workspace_id, row.user_id))
            planned = planned_calls(positions, session, row.id, row.kind)

            def of_model(model: Any) -> RunContext:
                choice = keys.choose(session, row.workspace_id, row.user_id, model.provider)
                return _context(row, model, day_caps, since, choice)

            judges = {
                model_id: replace(of_model(model), judge_model_id=model_id, plans=_asks(planned, model_id))
                for model_id, model in model_queries.by_ids(session, planned.judge_ids).items()
                if model_id is not None
            }
            own = _without_model(row) if row.provider is None else of_model(row)
            return replace(own, plans=planned.asks, judge_of=planned.judge_of, judges=judges)

        return await db.read(read)

    callers = Callers(find, clock)
    top = 2 * settings.demo_latency_s
    async with assemble(
        authenticate=callers.authenticate,
        forget=callers.forget,
        ledger=DatabaseLedger(db, clock, owner),
        env=os.environ,
        demo_load=demo_answers.load,
        clock=clock,
        rng=random.Random(os.urandom(8)),
        keys=keys,
        demo_latency_s=(min(0.005, top), top),
    ) as deps:
        yield deps


async def abandon_ended(live: Live, gateway: GatewayDeps) -> None:
    """Give up calls that still wait for their turn when their run ends, and forget cached runs that changed. Runs until
    cancelled."""
    async for batch in live.follow(after=None, inside=True):
        for event in (line.event for line in batch):
            if event.run_id is None or event.type != "transition":
                continue
            gateway.forget(event.run_id)
            if event.data.get("status") in TERMINAL:
                await gateway.coordinator.abandon(event.run_id)


def _asks(planned: PlannedCalls, model_id: int) -> Callable[[str], bool]:
    return lambda key: planned.judge_of(key) == model_id


def _without_model(row: Any) -> RunContext:
    """A run that asks no model of its own, such as one that grades stored answers."""
    return RunContext(run_id=row.id, attempt=row.number, slug="", provider="", model="")


def _context(row: Any, model: Any, day_caps: tuple[DayCap, ...], reuse_since: datetime | None, choice: Choice) -> RunContext:
    """A run as it asks one model."""
    return RunContext(
        run_id=row.id,
        attempt=row.number,
        slug=model.slug,
        provider=model.provider,
        model=model.name,
        prices=prices_of(model),
        budget_nusd=None if row.budget_usd is None else nusd(row.budget_usd),
        day_caps=day_caps,
        request_timeout_s=float(model.params.get("request_timeout_s") or 600.0),
        reuse_since=reuse_since,
        payer=choice.payer,
        no_key=choice.refused,
    )


def prices_of(model: LlmModel | Any) -> Prices | None:
    """None if a price is missing: the cost is then unknown, and a budget cannot be kept."""
    if model.input_price is None or model.output_price is None:
        return None
    cached, written = model.cached_input_price, model.cache_write_price
    return Prices(
        input_per_mtok=Decimal(str(model.input_price)),
        output_per_mtok=Decimal(str(model.output_price)),
        cached_input_per_mtok=None if cached is None else Decimal(str(cached)),
        cache_write_per_mtok=None if written is None else Decimal(str(written)),
        entered_on=model.prices_entered_at.date() if model.prices_entered_at else None,
    )


BEAT_S = 10.0

log = structlog.get_logger()


@asynccontextmanager
async def assemble(
    *,
    authenticate: Callable[[str], Awaitable[RunContext | None]],
    forget: Callable[[str], None] = lambda run_id: None,
    ledger: Ledger,
    env: Mapping[str, str],
    demo_load: Callable[[str], DemoAnswers],
    clock: Clock,
    rng: random.Random,
    sleep: Sleep = asyncio.sleep,
    policy: RetryPolicy | None = None,
    demo_latency_s: tuple[float, float] = (0.005, 0.3),
    grace_s: float = 5.0,
    keys: KeySource | None = None,
) -> AsyncIterator[GatewayDeps]:
    """A gateway for the duration of the block. On exit, calls at the provider have `grace_s` to finish."""
    _tell(await ledger.recover())
    upstreams: dict[str, Upstream] = {
        DEMO_PROVIDER: DemoUpstream(demo_load, clock=clock, sleep=sleep, latency_s=demo_latency_s)
    }
    tls = tls_context(env)
    for name, provider in providers_from_env(env).items():
        upstreams[name] = HttpUpstream(provider, env, clock=clock, tls=tls, keys=keys)
    coordinator = CallCoordinator(
        upstreams=upstreams, ledger=ledger, clock=clock, sleep=sleep, rng=rng, policy=policy or RetryPolicy()
    )
    beating = asyncio.create_task(_beat(ledger, sleep), name="gateway ledger beat")
    try:
        yield GatewayDeps(authenticate, coordinator, forget)
    finally:
        await coordinator.close(grace_s)
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        for upstream in upstreams.values():
            await upstream.close()


async def _beat(ledger: Ledger, sleep: Sleep) -> None:
    while True:
        await sleep(BEAT_S)
        try:
            _tell(await ledger.beat())
        except LedgerUnavailable as error:
            log.warning("ledger away", action="ledger_away", detail=str(error))


def _tell(recovered: Recovery) -> None:
    if recovered.lost or recovered.unsent:
        log.warning("calls recovered", action="calls_recovered", lost=recovered.lost, unsent=recovered.unsent)
