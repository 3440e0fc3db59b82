"""Connects the gateway to the rest of the service: run tokens, the ledger, keys and the demo models."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
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
from orchestrator.gateway.ledger.prices import Prices, nano_usd
from orchestrator.gateway.model_prices import prices_of
from orchestrator.gateway.pacing.retry import RetryPolicy
from orchestrator.gateway.provider_batches.access import Access
from orchestrator.gateway.provider_batches.keeper import BatchKeeper, PartLimits
from orchestrator.gateway.provider_batches.lots import BatchTerms, at_batch_prices
from orchestrator.gateway.provider_batches.part_steps import PartSteps, StepPolicy
from orchestrator.gateway.providers.directory import ProviderDirectory
from orchestrator.gateway.providers.form_book import FormBook
from orchestrator.gateway.providers.live_upstreams import LiveUpstreams
from orchestrator.gateway.upstream.http_upstream import HttpUpstream
from orchestrator.gateway.upstream.kinds.prompt_cache import PromptCache
from orchestrator.gateway.upstream.secrets.credentials import KeySource
from orchestrator.limits.service import caps
from orchestrator.models import queries as model_queries
from orchestrator.outbound.tls import tls_context
from orchestrator.provider_keys.service import Choice, ProviderKeys
from orchestrator.runs.lifecycle import TERMINAL
from orchestrator.runs.live.feed import Live
from orchestrator.runs.queueing.plan import PlannedCalls, PositionCache, planned_calls
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import same_token
from orchestrator.system.telemetry import Telemetry


@asynccontextmanager
async def open_gateway(
    settings: Settings,
    db: Database,
    clock: Clock,
    owner: str,
    keys: ProviderKeys,
    positions: PositionCache,
    forms: FormBook | None = None,
    telemetry: Telemetry | None = None,
) -> AsyncIterator[GatewayDeps]:
    of_all = () if settings.daily_budget_usd is None else (DayCap(nano_usd(settings.daily_budget_usd)),)

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
                provider = keys.providers.get(model.provider)
                over = 1.0 if forms is None or provider is None else forms.of(provider, model.name).most_over
                context = replace(_context(row, model, day_caps, since, choice), over_limit=max(1.0, over))
                return replace(context, batch=_terms(settings, context.prices)) if row.batch else context

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
        providers=keys.directory,
        forms=forms,
        demo_load=demo_answers.load,
        clock=clock,
        rng=random.Random(os.urandom(8)),
        keys=keys,
        demo_latency_s=(min(0.005, top), top),
        telemetry=telemetry,
        prompt_cache=PromptCache() if settings.prompt_caching else None,
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


def _terms(settings: Settings, prices: Prices | None) -> BatchTerms:
    share = Decimal(str(settings.batch_price_share))
    return BatchTerms(at_batch_prices(prices, share), settings.batch_turns, settings.batch_unanswered == "call")


def open_batches(
    settings: Settings, db: Database, clock: Clock, leadership: Leadership, gateway: GatewayDeps, wake: Callable[[], None]
) -> BatchKeeper:
    """What keeps provider batches going; its `keep_on` is to run in the background."""
    policy = StepPolicy(
        poll_s=settings.batch_poll_s,
        lost_after_s=settings.batch_lost_after_s,
        most_tries=MOST_BATCHES if settings.batch_unanswered == "retry" else 1,
        folder=settings.data.absolute() / "batches",
    )
    steps = PartSteps(db, leadership, clock, Access(gateway.coordinator.upstream), policy)
    limits = PartLimits(settings.batch_max_calls, settings.batch_max_bytes)
    return BatchKeeper(db, leadership, clock, steps, limits, wake=wake)


MOST_BATCHES = 3
"""In how many batches a call may be before it counts as failed, where such calls are retried."""


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
        budget_nano_usd=None if row.budget_usd is None else nano_usd(row.budget_usd),
        day_caps=day_caps,
        request_timeout_s=float(model.params.get("request_timeout_s") or 600.0),
        reuse_since=reuse_since,
        payer=choice.payer,
        no_key=choice.refused,
    )


BEAT_S = 10.0

log = structlog.get_logger()


@asynccontextmanager
async def assemble(
    *,
    authenticate: Callable[[str], Awaitable[RunContext | None]],
    forget: Callable[[str], None] = lambda run_id: None,
    ledger: Ledger,
    providers: ProviderDirectory,
    forms: FormBook | None = None,
    demo_load: Callable[[str], DemoAnswers],
    clock: Clock,
    rng: random.Random,
    sleep: Sleep = asyncio.sleep,
    policy: RetryPolicy | None = None,
    demo_latency_s: tuple[float, float] = (0.005, 0.3),
    grace_s: float = 5.0,
    keys: KeySource | None = None,
    telemetry: Telemetry | None = None,
    prompt_cache: PromptCache | None = None,
) -> AsyncIterator[GatewayDeps]:
    """A gateway for the duration of the block. On exit, calls at the provider have `grace_s` to finish."""
    _tell(await ledger.recover())
    forms, tls = forms or FormBook(), tls_context(providers.env)
    upstreams = LiveUpstreams(
        {DEMO_PROVIDER: DemoUpstream(demo_load, clock=clock, sleep=sleep, latency_s=demo_latency_s)},
        lambda provider: HttpUpstream(
            provider, providers.env, clock=clock, tls=tls, keys=keys, forms=forms, prompt_cache=prompt_cache
        ),
    )
    await providers.follow(upstreams.apply)
    coordinator = CallCoordinator(
        upstreams=upstreams,
        ledger=ledger,
        clock=clock,
        sleep=sleep,
        rng=rng,
        policy=policy or RetryPolicy(),
        telemetry=telemetry,
    )
    beating = asyncio.create_task(_beat(ledger, sleep), name="gateway ledger beat")
    try:
        yield GatewayDeps(authenticate, coordinator, forget)
    finally:
        await coordinator.close(grace_s)
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        await upstreams.close()


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
