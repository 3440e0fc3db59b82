"""Models of Amazon Bedrock and Vertex AI, through the gateway with the real SDKs: signatures and tokens that the servers
check, tokens and costs, and no secret in anything that is kept."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
import pytest
from starlette.applications import Starlette

from orchestrator.gateway.ledger.prices import cost_nano_usd
from orchestrator.gateway.protocols.protocol import TokenUsage
from orchestrator.gateway.upstream.http_upstream import HttpUpstream
from orchestrator.gateway.upstream.kinds.table import KINDS
from orchestrator.gateway.upstream.model_lists import ListFailed, list_models
from orchestrator.gateway.upstream.providers import Provider, providers_from_env
from orchestrator.gateway.upstream.secrets.authorization import key_problem
from orchestrator.gateway.upstream.secrets.aws_signing import region_of
from orchestrator.system.clock import SystemClock
from runner.contract.run_spec import THINKING_FIELD
from tests.service.gateway.cloud_servers import ACCESS, API_KEY, CONVERSED, SECRET, SESSION, Bedrock, Google
from tests.service.gateway.gateway_parts import World, gateway, key, run_context
from tests.service.gateway.gateway_server import serving
from tests.service.gateway.odd_provider import TLS, stream, used
from tests.service.gateway.test_kinds import MESSAGE, PRICES, SPOKEN
from tests.unit.gateway.memory_ledger import MemoryLedger

pytestmark = pytest.mark.anyio

KEYS = f"{ACCESS}:{SECRET}:{SESSION}"
COUNTED = TokenUsage(100, 7, cached_tokens=60, cache_write_tokens=30)
CLAUDE_USAGE = {"input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30, "output_tokens": 7}
CLAUDE = {**MESSAGE, "usage": CLAUDE_USAGE}
MODEL = "us.maker.model-v1:0"


class LaterClock(SystemClock):
    later_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.later_s


@dataclass
class Cloud:
    world: World
    provider: Provider
    env: dict[str, str]
    ledger: MemoryLedger
    clock: LaterClock
    asked: int = 0

    async def chat(self, **fields: Any) -> Any:
        self.asked += 1
        fields = {"messages": [{"role": "user", "content": "hi"}], "max_completion_tokens": 100, **fields}
        async with self.world.openai("cloud") as client:
            return await client.chat.completions.create(model=MODEL, **fields, extra_headers=key(f"b/p/{self.asked}/0"))

    async def message(self, model: str = MODEL, **fields: Any) -> Any:
        self.asked += 1
        asked = [{"role": "user", "content": "hi"}]
        async with self.world.anthropic("cloud") as client:
            headers = key(f"b/p/{self.asked}/0")
            return await client.messages.create(model=model, messages=asked, max_tokens=100, extra_headers=headers, **fields)

    def paid(self) -> list[tuple[TokenUsage, int]]:
        return [(row.settlement.usage, row.settlement.cost_nano_usd) for row in self.ledger.rows.values() if row.settlement]


@contextlib.asynccontextmanager
async def cloud(kind: str, app: Starlette, secret: Any, path: str = "", model: str = MODEL) -> AsyncIterator[Cloud]:
    """`secret` is the key, or makes it from the server's address."""
    async with serving(app) as url:
        env = {
            "BENCHYARD_PROVIDER_CLOUD_KIND": kind,
            "BENCHYARD_PROVIDER_CLOUD_BASE_URL": url + path,
            "BENCHYARD_PROVIDER_CLOUD_API_KEY": secret if isinstance(secret, str) else secret(url),
        }
        provider, clock, ledger = providers_from_env(env)["cloud"], LaterClock(), MemoryLedger()
        upstream = HttpUpstream(provider, env, clock=clock, tls=TLS)
        context = run_context(provider="cloud", model=model, slug="m", prices=PRICES)
        async with gateway(context, upstreams={"cloud": upstream}, ledger=ledger) as world:
            yield Cloud(world, provider, env, ledger, clock)
        await upstream.close()


@pytest.mark.parametrize("secret", [KEYS, API_KEY], ids=["access keys", "API key"])
async def test_bedrock_converses(secret: str) -> None:
    server = Bedrock(CONVERSED)
    async with cloud("bedrock", server.app(), secret) as there:
        answer = await there.chat(
            messages=[
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "one"},
                {"role": "user", "content": [{"type": "text", "text": "two"}]},
                {"role": "assistant", "content": "ok"},
                {"role": "user", "content": "three"},
            ],
            temperature=0.5,
            stop=["END"],
            seed=7,
            extra_body={"top_k": 5},
        )
        assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("Hello", "stop")
        assert answer.choices[0].message.reasoning_content == "hm"
        assert there.paid() == [(COUNTED, cost_nano_usd(COUNTED, PRICES))]
        assert server.asked == [
            (
                MODEL,
                {
                    "system": [{"text": "Be brief."}],
                    "messages": [
                        {"role": "user", "content": [{"text": "one"}, {"text": "two"}]},
                        {"role": "assistant", "content": [{"text": "ok"}]},
                        {"role": "user", "content": [{"text": "three"}]},
                    ],
                    "inferenceConfig": {"maxTokens": 100, "temperature": 0.5, "stopSequences": ["END"]},
                    "additionalModelRequestFields": {"top_k": 5},
                },
            )
        ]
        await there.chat(max_completion_tokens=5000, extra_body={THINKING_FIELD: True})
        fields = server.asked[1][1]["additionalModelRequestFields"]
        assert fields == {"thinking": {"type": "enabled", "budget_tokens": 2500}}
        names = [model.name for model in await list_models(there.provider, there.env, clock=SystemClock())]
        assert names == ["meta.llama-v1:0", "us.anthropic.claude-v1:0", "us.meta.llama-v1:0"]
    assert server.refused == []


@pytest.mark.parametrize("secret", [KEYS, API_KEY], ids=["access keys", "API key"])
async def test_claude_on_bedrock(secret: str) -> None:
    server = Bedrock(CLAUDE)
    async with cloud("bedrock_anthropic", server.app(), secret) as there:
        answer = await there.message(system="Be brief.")
        assert answer.content[0].text == "Hello"
        assert there.paid() == [(COUNTED, cost_nano_usd(COUNTED, PRICES))]
        names = [model.name for model in await list_models(there.provider, there.env, clock=SystemClock())]
        assert names == ["us.anthropic.claude-v1:0"]
    ((model, body),) = server.asked
    assert (model, server.refused) == (MODEL, [])
    assert body.keys() == {"anthropic_version", "messages", "max_tokens", "system"}


async def test_wrong_access_keys_are_refused_at_once() -> None:
    async with cloud("bedrock", Bedrock(CONVERSED).app(), f"{ACCESS}:{'x' * 40}:{SESSION}") as there:
        with pytest.raises(openai.PermissionDeniedError, match="signature we calculated does not match"):
            await there.chat()


async def test_what_is_not_translated_is_refused_with_a_sentence() -> None:
    server = Bedrock(CONVERSED)
    async with cloud("bedrock", server.app(), KEYS) as there:
        with pytest.raises(openai.BadRequestError, match="tools is not translated for Bedrock"):
            await there.chat(tools=[{"type": "function", "function": {"name": "f"}}])
    assert server.asked == []


async def test_no_part_of_the_access_keys_is_kept() -> None:
    async with cloud("bedrock", Bedrock(CONVERSED, echo=True).app(), KEYS) as there:
        with pytest.raises(openai.BadRequestError) as refused:
            await there.chat()
        with pytest.raises(ListFailed):
            await list_models(there.provider, there.env, clock=SystemClock())
        kept = f"{refused.value.response.text} {there.ledger.rows}"
    assert "malformed" in kept
    assert not [secret for secret in (ACCESS, SECRET, SESSION) if secret in kept]


def google() -> Google:
    return Google(CLAUDE, stream(*SPOKEN, used(prompt_tokens=100, completion_tokens=7, total_tokens=107)))


def account(server: Google) -> Any:
    def made(url: str) -> str:
        server.url = url
        return json.dumps(server.account, indent=2)

    return made


async def test_gemini_on_vertex_with_tokens_that_are_refreshed() -> None:
    server = google()
    path = "/v1/projects/p/locations/l/endpoints/openapi"
    async with cloud("vertex", server.app(), account(server), path) as there:
        assert (await there.chat(seed=7)).choices[0].message.content == "Hello"
        await there.chat()
        assert len(server.sold) == 1, "a token is bought once"
        there.clock.later_s = 3500
        await there.chat()
        assert len(server.sold) == 2, "and again before it expires"
        assert [usage for usage, _ in there.paid()] == [TokenUsage(100, 7)] * 3
        with pytest.raises(ListFailed, match="no list of models"):
            await list_models(there.provider, there.env, clock=SystemClock())
        kept = str(there.ledger.rows)
    assert "seed" not in server.asked[0][1]
    assert "ya29" not in kept


async def test_claude_on_vertex() -> None:
    server = google()
    async with cloud("vertex_anthropic", server.app(), account(server), "/v1/projects/p/locations/l", "m") as there:
        assert (await there.message("m")).content[0].text == "Hello"
        assert there.paid() == [(COUNTED, cost_nano_usd(COUNTED, PRICES))]
    assert server.asked[0][0] == "m:streamRawPredict"


async def test_an_account_that_gets_no_token_is_named_without_its_key() -> None:
    server = google()
    server.refuses = True
    async with cloud("vertex_anthropic", server.app(), account(server), "/v1/projects/p/locations/l", "m") as there:
        with pytest.raises(
            anthropic.AuthenticationError, match=r"refused the service account bench@p.*Invalid JWT"
        ) as refused:
            await there.message("m")
    assert not server.asked
    assert server.account["private_key"].splitlines()[3] not in f"{refused.value.response.text} {there.ledger.rows}"


@pytest.mark.parametrize(
    ("kind", "entered", "words"),
    [
        ("vertex", '{"type": "authorized_user"}', "not the JSON key of a Google service account"),
        ("bedrock", ACCESS, "ACCESS_KEY_ID:SECRET_ACCESS_KEY"),
        ("bedrock", KEYS, None),
        ("bedrock", API_KEY, None),
        ("openai", "{", None),
    ],
)
def test_a_key_that_cannot_be_right_is_said(kind: str, entered: str, words: str | None) -> None:
    problem = key_problem(KINDS[kind], entered)
    assert problem is None if words is None else words in str(problem)


@pytest.mark.parametrize(
    ("url", "region"),
    [
        ("https://bedrock-runtime.eu-central-1.amazonaws.com", "eu-central-1"),
        ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("https://vpce-1.bedrock-runtime.ap-southeast-2.vpce.amazonaws.com", "ap-southeast-2"),
        ("https://bedrock.us-west-2.amazonaws.com/foundation-models", "us-west-2"),
        ("http://127.0.0.1:1", "us-east-1"),
    ],
)
def test_the_region_is_that_of_the_address(url: str, region: str) -> None:
    assert region_of(url) == region
