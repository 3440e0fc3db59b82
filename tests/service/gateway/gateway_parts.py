"""What the gateway's tests are made of: a run, recorded answers, a gateway with known parts, SDK clients for it."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import anthropic
import openai

from orchestrator.gateway.calls import RunContext
from orchestrator.gateway.coordinator import CallCoordinator
from orchestrator.gateway.demo.provider import DemoUpstream
from orchestrator.gateway.edge.router import Gateway, GatewayDeps
from orchestrator.gateway.ledger.ledger import Ledger
from orchestrator.gateway.pacing.retry import RetryPolicy
from orchestrator.gateway.upstream.port import Upstream
from orchestrator.http.problems import not_found
from orchestrator.system.clock import SystemClock
from runner.contract.run_spec import CALL_KEY_HEADER
from tests.service.gateway.gateway_server import serving
from tests.unit.gateway.memory_ledger import MemoryLedger

TOKEN = "run-token"
QUICK = RetryPolicy(max_tries=4, total_s=5.0, base_s=0.01, longest_s=0.05)


@dataclass(frozen=True)
class Recorded:
    text: str
    thinking: str | None = None
    stop_reason: str = "end_turn"
    input_tokens: int = 11
    output_tokens: int = 7


@dataclass(frozen=True)
class RecordedAnswers:
    """Answers by a piece of the prompt and the sample."""

    by_text: Mapping[tuple[str, int], Recorded]

    def find(self, prompt_text: str, sample: int) -> Recorded | None:
        for (text, number), answer in self.by_text.items():
            if text in prompt_text and number == sample:
                return answer
        return None


DEMO = RecordedAnswers(
    {
        ("Add two numbers.", 0): Recorded("```python\nprint(sum(map(int, input().split())))\n```" * 40),
        ("Add two numbers.", 1): Recorded("ünïcode\n\nzwei", thinking="let me think\n" * 100),
        ("Cut short.", 0): Recorded("def", stop_reason="max_tokens"),
    }
)


@dataclass
class World:
    """A gateway that is being served."""

    url: str
    coordinator: CallCoordinator
    ledger: Ledger
    runs: dict[str, RunContext] = field(default_factory=dict)

    def base(self, provider: str) -> str:
        return f"{self.url}/gateway/{provider}"

    def anthropic(self, provider: str = "demo", token: str = TOKEN) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(base_url=self.base(provider), api_key=token, max_retries=0, timeout=300)

    def openai(self, provider: str = "demo", token: str = TOKEN) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=f"{self.base(provider)}/v1", api_key=token, max_retries=0, timeout=300)


def run_context(**changes: object) -> RunContext:
    facts: dict[str, object] = {
        "run_id": "run-1",
        "attempt": 1,
        "slug": "demo-strong",
        "provider": "demo",
        "model": "demo-strong",
    }
    return RunContext(**(facts | changes))  # type: ignore[arg-type]


def key(text: str) -> dict[str, str]:
    return {CALL_KEY_HEADER: text}


def demo_upstream() -> DemoUpstream:
    return DemoUpstream(lambda model: DEMO, clock=SystemClock(), sleep=asyncio.sleep, latency_s=(0.0, 0.002))


@contextlib.asynccontextmanager
async def gateway(
    *contexts: RunContext,
    upstreams: Mapping[str, Upstream] | None = None,
    ledger: Ledger | None = None,
    policy: RetryPolicy = QUICK,
    patience_s: float = 20.0,
) -> AsyncIterator[World]:
    """Serve a gateway for the given runs; the token of the first is `TOKEN`, of the others `TOKEN-2` and so on."""
    ledger = ledger or MemoryLedger()
    coordinator = CallCoordinator(
        upstreams={"demo": demo_upstream()} if upstreams is None else upstreams,
        ledger=ledger,
        clock=SystemClock(),
        sleep=asyncio.sleep,
        rng=random.Random(1),
        policy=policy,
    )
    runs = {TOKEN if number == 1 else f"{TOKEN}-{number}": context for number, context in enumerate(contexts, 1)}

    async def authenticate(token: str) -> RunContext | None:
        return runs.get(token)

    deps = GatewayDeps(authenticate, coordinator, patience_s=patience_s, ping_s=0.05)
    async with serving(Gateway(deps, not_found)) as url:
        try:
            yield World(url, coordinator, ledger, runs)
        finally:
            await coordinator.close(grace_s=0.5)
