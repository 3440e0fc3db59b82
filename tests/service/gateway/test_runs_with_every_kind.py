"""A whole run with every kind of provider, by a real service and real runners: it completes in the server's own form, with
the server's own counts of tokens and what they cost."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from orchestrator.gateway.ledger.prices import cost_nano_usd
from orchestrator.gateway.protocols.protocol import TokenUsage
from orchestrator.gateway.upstream.kinds.table import GENERIC, KINDS
from tests.faults.service import Service
from tests.service.gateway.batches.batch_world import BatchWorld, sums
from tests.service.gateway.cloud_servers import CONVERSED, Bedrock
from tests.service.gateway.gateway_server import serving
from tests.service.gateway.strict_servers import SERVERS
from tests.service.gateway.test_clouds import CLAUDE, COUNTED, KEYS, MODEL, account, google
from tests.service.gateway.test_kinds import PRICES, SECRET, strict_app

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ITEMS = 2
LOCATION = "/v1/projects/p/locations/l"
OWN_PROTOCOL = {"anthropic", "bedrock_anthropic", "vertex_anthropic"}
PRICE_FIELDS = {
    "input_price": PRICES.input_per_mtok,
    "output_price": PRICES.output_per_mtok,
    "cached_input_price": PRICES.cached_input_per_mtok,
    "cache_write_price": PRICES.cache_write_per_mtok,
    "reasoning_price": PRICES.reasoning_per_mtok,
}


class Lab(BatchWorld):
    """A service that knows every kind by its environment; a provider is called after its kind."""

    def __init__(self, data: Path, providers: dict[str, dict[str, str]]) -> None:
        named = {f"provider_by_{kind}_{name}": value for kind, fields in providers.items() for name, value in fields.items()}
        settings: dict[str, Any] = {"engine": "process", "reconcile_s": 0.5, "prompt_caching": "false", **named}
        self.service = Service(data, **settings)
        self.client = self.service.client

    def ask(self, kind: str, model: str) -> str:
        body = {
            **{"slug": kind, "provider": f"by-{kind.replace('_', '-')}", "name": model},
            "protocol": "anthropic" if kind in OWN_PROTOCOL else "openai_chat",
            "params": {"max_tokens": 100},
            **{name: float(price or 0) for name, price in PRICE_FIELDS.items()},
        }
        answer = self.client.post("/api/models", json=body)
        assert answer.status_code == 201, answer.text
        return self.submit(kind, sample_size=ITEMS, batch=False)

    def calls(self, run_id: str) -> list[dict[str, Any]]:
        return list(self.client.get(f"/api/container-runs/{run_id}/calls").json()["items"])


def counted_by(kind: str) -> TokenUsage:
    if kind in SERVERS:
        return SERVERS[kind].counted
    return TokenUsage(100, 7) if kind == "vertex" else COUNTED


async def test_a_run_completes_with_every_kind(tmp_path: Path) -> None:
    refused: list[Any] = []
    providers: dict[str, dict[str, str]] = {}
    models: dict[str, str] = {}
    async with contextlib.AsyncExitStack() as stack:
        for kind, server in SERVERS.items():
            url = await stack.enter_async_context(serving(strict_app(kind, [], refused)))
            providers[kind] = {"kind": kind, "base_url": url + server.base, "api_key": SECRET}
            models[kind] = "m"
        for kind, answer in (("bedrock", CONVERSED), ("bedrock_anthropic", CLAUDE)):
            url = await stack.enter_async_context(serving(Bedrock(answer).app()))
            providers[kind] = {"kind": kind, "base_url": url, "api_key": KEYS}
            models[kind] = MODEL
        for kind, path in (("vertex", LOCATION + "/endpoints/openapi"), ("vertex_anthropic", LOCATION)):
            there = google()
            url = await stack.enter_async_context(serving(there.app()))
            providers[kind] = {"kind": kind, "base_url": url + path, "api_key": account(there)(url)}
            models[kind] = "m"
        assert set(providers) == set(KINDS) - {GENERIC.name}
        lab = Lab(tmp_path / "data", providers)
        await asyncio.to_thread(run_all, lab, models)
    assert refused == []


def run_all(lab: Lab, models: dict[str, str]) -> None:
    lab.start()
    try:
        lab.add(sums("sums", ITEMS))
        runs = {kind: lab.ask(kind, model) for kind, model in models.items()}
        for kind, run_id in runs.items():
            run, calls, usage = lab.ended(run_id), lab.calls(run_id), counted_by(kind)
            assert run["status"] == "completed", (kind, run)
            counts = [(call["input_tokens"], call["output_tokens"], call["cached_tokens"]) for call in calls]
            assert counts == [(usage.input_tokens, usage.output_tokens, usage.cached_tokens)] * ITEMS, kind
            assert run["cost_usd"] == pytest.approx(ITEMS * cost_nano_usd(usage, PRICES) / 1e9), kind
    finally:
        lab.service.stop()
        lab.client.close()
