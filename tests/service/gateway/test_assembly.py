"""The gateway as the service opens it: recorded answers to the sample, recovery at the start, keys of nobody."""

from __future__ import annotations

import json
import random
from importlib.resources import files

import pytest

from orchestrator.gateway.calls import RunContext
from orchestrator.gateway.demo import answers as demo_answers
from orchestrator.gateway.edge.router import Gateway
from orchestrator.gateway.ledger.ledger import CallState
from orchestrator.gateway.providers.directory import ProviderDirectory
from orchestrator.gateway.wiring import assemble
from orchestrator.http.problems import not_found
from orchestrator.system.clock import SystemClock
from tests.service.gateway.gateway_parts import TOKEN, key, run_context
from tests.service.gateway.gateway_server import serving
from tests.unit.gateway.memory_ledger import MemoryLedger, Row

pytestmark = pytest.mark.anyio


async def test_the_sample_is_answered_and_an_earlier_life_is_cleared_up() -> None:
    import anthropic

    ledger = MemoryLedger({("run-1", "old"): Row("h", CallState.SENT, 5)})

    async def authenticate(token: str) -> RunContext | None:
        return {TOKEN: run_context(), "claude": run_context(provider="anthropic", model="claude")}.get(token)

    lines = (files("orchestrator.datasets") / "sample" / "problems.jsonl").read_text().splitlines()
    problem = json.loads(lines[0])["question_content"]
    async with (
        assemble(
            authenticate=authenticate,
            ledger=ledger,
            providers=ProviderDirectory({}),
            demo_load=demo_answers.load,
            clock=SystemClock(),
            rng=random.Random(1),
            demo_latency_s=(0.0, 0.01),
        ) as deps,
        serving(Gateway(deps, not_found)) as url,
    ):
        async with anthropic.AsyncAnthropic(base_url=f"{url}/gateway/demo", api_key=TOKEN, max_retries=0) as client:
            question = {"max_tokens": 999, "messages": [{"role": "user", "content": f"### Question:\n{problem}\n"}]}
            message = await client.messages.create(model="demo-strong", **question, extra_headers=key("sample/p/0/0"))
        async with anthropic.AsyncAnthropic(base_url=f"{url}/gateway/anthropic", api_key="claude", max_retries=0) as client:
            with pytest.raises(anthropic.AuthenticationError, match="set ANTHROPIC_API_KEY") as refused:
                await client.messages.create(model="claude", **question, extra_headers=key("sample/p/0/1"))
    assert "```python" in "".join(block.text for block in message.content if block.type == "text")
    assert refused.value.response.headers["x-benchyard-code"] == "PROVIDER_KEY_REFUSED"
    assert ledger.rows["run-1", "old"].lost_sends == 1
