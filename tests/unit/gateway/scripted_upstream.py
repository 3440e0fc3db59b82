"""A coordinator without HTTP: scripted upstreams, for everything that is about order, money and time."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from orchestrator.gateway.calls import Call, RunContext
from orchestrator.gateway.coordinator import CallCoordinator
from orchestrator.gateway.edge.call_checks import admit
from orchestrator.gateway.edge.errors import UpstreamError
from orchestrator.gateway.ledger.ledger import Ledger
from orchestrator.gateway.pacing.retry import RetryPolicy
from orchestrator.gateway.protocols.anthropic_messages import AnthropicMessages
from orchestrator.gateway.protocols.protocol import Finish, PlainReply, TokenUsage
from orchestrator.gateway.upstream.port import Received, Reply
from runner.contract.run_spec import CALL_KEY_HEADER
from tests.service.gateway.gateway_parts import run_context
from tests.unit.gateway.memory_ledger import MemoryLedger
from tests.unit.gateway.virtual_time import LoopClock

WIRE = AnthropicMessages()


@dataclass
class ScriptedUpstream:
    """Takes `latency_s`, then does what `act` says: an error to raise, or None for an answer of `output_tokens`."""

    act: Callable[[Call], UpstreamError | None] = lambda call: None
    latency_s: Callable[[], float] = lambda: 1.0
    output_tokens: int = 100
    calls: Counter[str] = field(default_factory=Counter)
    at_once: int = 0
    server: str = "scripted"

    async def ask(self, call: Call, received: Received) -> Reply:
        self.calls[call.key] += 1
        self.at_once += 1
        try:
            error = self.act(call)
            await asyncio.sleep(self.latency_s() if error is None else 0.05)
            if error is not None:
                raise error
        finally:
            self.at_once -= 1
        usage = TokenUsage(10, self.output_tokens)
        return Reply(WIRE.compose(PlainReply("1", call.request.model, 0, "yes", "", Finish.STOP, usage)))

    def notes(self, model: str) -> list[str]:
        return []

    async def close(self) -> None:
        """Nothing to close."""


def make_coordinator(
    upstream: ScriptedUpstream, ledger: Ledger | None = None, policy: RetryPolicy | None = None, seed: int = 1
) -> CallCoordinator:
    return CallCoordinator(
        upstreams={"anthropic": upstream},
        ledger=ledger or MemoryLedger(),
        clock=LoopClock(),
        sleep=asyncio.sleep,
        rng=random.Random(seed),
        policy=policy or RetryPolicy(),
    )


def claude_run(run_id: str = "run-1", **changes: Any) -> RunContext:
    return run_context(run_id=run_id, provider="anthropic", model="claude-test", slug="claude-test", **changes)


def make_call(context: RunContext, key: str, *, max_tokens: int = 1000) -> Call:
    body = {"model": "claude-test", "max_tokens": max_tokens, "messages": [{"role": "user", "content": key}]}
    return admit(context, "anthropic", WIRE, {CALL_KEY_HEADER: key}, body, len(json.dumps(body)))
