"""A real LiteLLM proxy between the gateway and a provider: requests have the right form at once, its counts are paid."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path

import httpx
import pytest

from orchestrator.gateway.ledger.prices import cost_nano_usd
from orchestrator.gateway.upstream.http_upstream import HttpUpstream
from orchestrator.gateway.upstream.model_lists import list_models
from orchestrator.gateway.upstream.providers import providers_from_env
from orchestrator.system.clock import SystemClock
from tests.faults.service import free_ports
from tests.service.gateway.fake_provider import FakeProvider
from tests.service.gateway.gateway_parts import gateway, key, run_context
from tests.service.gateway.gateway_server import serving
from tests.service.gateway.odd_provider import TLS
from tests.service.gateway.test_kinds import PRICES
from tests.unit.gateway.memory_ledger import MemoryLedger

pytestmark = [pytest.mark.anyio, pytest.mark.exhaustive]

MASTER = "sk-litellm-0123456789"
STARTS_WITHIN_S = 300
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def programs() -> Path:
    made = subprocess.run([ROOT / "scripts/python-environment", "litellm"], capture_output=True, text=True, check=True)
    return Path(made.stdout.strip())


async def test_calls_through_a_real_litellm(programs: Path, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    fake, ledger = FakeProvider(), MemoryLedger()
    async with serving(fake.app()) as behind:
        model = {"model": "openai/gpt-behind", "api_base": f"{behind}/v1", "api_key": "sk-behind-0123456789"}
        config = {"model_list": [{"model_name": "m", "litellm_params": model}], "general_settings": {"master_key": MASTER}}
        (tmp_path / "config.json").write_text(json.dumps(config))
        with (tmp_path / "log").open("wb") as log:
            server = await asyncio.create_subprocess_exec(
                *(programs / "litellm", "--config", tmp_path / "config.json", "--host", "127.0.0.1", "--port", str(port)),
                env={
                    "PATH": f"{programs}:{os.environ['PATH']}",
                    "HOME": str(tmp_path),
                    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                },
                cwd=tmp_path,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            await _answers(f"http://127.0.0.1:{port}/health/liveliness", server, tmp_path / "log")
            env = {
                "BENCHYARD_PROVIDER_PROXY_KIND": "litellm",
                "BENCHYARD_PROVIDER_PROXY_BASE_URL": f"http://127.0.0.1:{port}/v1",
                "BENCHYARD_PROVIDER_PROXY_API_KEY": MASTER,
            }
            provider = providers_from_env(env)["proxy"]
            upstream = HttpUpstream(provider, env, clock=SystemClock(), tls=TLS)
            context = run_context(provider="proxy", model="m", slug="m", prices=PRICES)
            async with (
                gateway(context, upstreams={"proxy": upstream}, ledger=ledger) as world,
                world.openai("proxy") as client,
            ):
                answer = await client.chat.completions.create(
                    model="m",
                    messages=[{"role": "user", "content": "hello"}],
                    max_completion_tokens=50,
                    temperature=0.5,
                    seed=7,
                    extra_headers=key("b/p/0/0"),
                )
            await upstream.close()
            names = [listed.name for listed in await list_models(provider, env, clock=SystemClock())]
        finally:
            server.terminate()
            await server.wait()
    assert answer.choices[0].message.content
    assert names == ["m"]
    (row,) = ledger.rows.values()
    assert row.settlement is not None
    assert answer.usage is not None
    counted = row.settlement.usage
    assert (counted.input_tokens, counted.output_tokens) == (answer.usage.prompt_tokens, answer.usage.completion_tokens)
    assert row.settlement.cost_nano_usd == cost_nano_usd(counted, PRICES) > 0
    body = fake.requests[-1][2]
    assert {body.get("max_completion_tokens"), body.get("max_tokens")} - {None} == {50}


async def _answers(url: str, server: asyncio.subprocess.Process, log: Path) -> None:
    async with asyncio.timeout(STARTS_WITHIN_S), httpx.AsyncClient() as client:
        while True:
            assert server.returncode is None, log.read_text()[-3000:]
            try:
                if (await client.get(url)).is_success:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.2)
