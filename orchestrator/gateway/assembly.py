"""The gateway put together from its parts, for the composition root."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import structlog

from orchestrator.gateway.coordinator import CallDesk
from orchestrator.gateway.demo.provider import DEMO_PROVIDER, DemoAnswers, DemoUpstream
from orchestrator.gateway.edge.context import RunContext
from orchestrator.gateway.edge.router import GatewayDeps
from orchestrator.gateway.ledger.ledger import Ledger, LedgerUnavailable, Recovered
from orchestrator.gateway.pacing.retry import RetryPolicy
from orchestrator.gateway.pacing.wait_reasons import WaitBoard
from orchestrator.gateway.sender import Sender, Sleep
from orchestrator.gateway.upstream.credentials import KeySource
from orchestrator.gateway.upstream.http_upstream import HttpUpstream
from orchestrator.gateway.upstream.port import Upstream
from orchestrator.gateway.upstream.providers import providers_from_env
from orchestrator.system.clock import Clock

BEAT_S = 10.0

log = structlog.get_logger()


@asynccontextmanager
async def open_gateway(
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
    """A gateway for as long as the block lasts. On leaving, calls at the provider have `grace_s` to come home."""
    _tell(await ledger.recover())
    upstreams: dict[str, Upstream] = {
        DEMO_PROVIDER: DemoUpstream(demo_load, clock=clock, sleep=sleep, latency_s=demo_latency_s)
    }
    tls = ssl.create_default_context()
    for name, provider in providers_from_env(env).items():
        upstreams[name] = HttpUpstream(provider, env, clock=clock, tls=tls, keys=keys)
    board = WaitBoard(clock)
    sender = Sender(
        upstreams=upstreams,
        ledger=ledger,
        board=board,
        clock=clock,
        sleep=sleep,
        rng=rng,
        policy=policy or RetryPolicy(),
    )
    desk = CallDesk(ledger=ledger, sender=sender, board=board)
    beating = asyncio.create_task(_beat(ledger, sleep), name="gateway ledger beat")
    try:
        yield GatewayDeps(authenticate, desk, forget)
    finally:
        await desk.close(grace_s)
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


def _tell(recovered: Recovered) -> None:
    if recovered.lost or recovered.unsent:
        log.warning("calls recovered", action="calls_recovered", lost=recovered.lost, unsent=recovered.unsent)
