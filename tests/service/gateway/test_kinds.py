"""Every kind of provider against a strict server of its kind, through the gateway with the real SDKs: one request each,
in the right form at once."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orchestrator.gateway.calls import Settlement
from orchestrator.gateway.ledger.prices import Prices, cost_nano_usd
from orchestrator.gateway.upstream.http_upstream import HttpUpstream
from orchestrator.gateway.upstream.kinds.table import GENERIC, KINDS
from orchestrator.gateway.upstream.model_lists import list_models
from orchestrator.gateway.upstream.providers import BadProvider, Provider, providers_from_env
from orchestrator.system.clock import SystemClock
from runner.contract.run_spec import THINKING_FIELD, Protocol
from tests.service.gateway.gateway_parts import World, gateway, key, run_context
from tests.service.gateway.gateway_server import serving
from tests.service.gateway.odd_provider import TLS, chunk, stream, used
from tests.service.gateway.strict_servers import SERVERS, Json, Rules
from tests.unit.gateway.memory_ledger import MemoryLedger

pytestmark = pytest.mark.anyio

SECRET = "sk-kinds-0123456789"
MESSAGE = {
    "id": "m1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Hello"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
}
SPOKEN = (chunk({"role": "assistant", "content": "Hel"}), chunk({"content": "lo"}, "stop"))
PRICES = Prices(Decimal(2), Decimal(10), Decimal("0.2"), Decimal("2.5"), reasoning_per_mtok=Decimal(12))
CLOUDS = {"bedrock", "bedrock_anthropic", "vertex", "vertex_anthropic"}
"""They are in `test_clouds`."""


@dataclass
class KindWorld:
    world: World
    provider: Provider
    env: dict[str, str]
    upstream: HttpUpstream
    asked: list[Json]
    refused: list[Any]

    @property
    def settled(self) -> Settlement:
        assert isinstance(self.world.ledger, MemoryLedger)
        (row,) = self.world.ledger.rows.values()
        assert row.settlement is not None
        return row.settlement

    async def ask(self, **fields: Any) -> str:
        question: Json = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}
        headers = key("b/p/0/0")
        if Protocol.ANTHROPIC in self.provider.protocols:
            async with self.world.anthropic("strict") as client:
                answer = await client.messages.create(**question, max_tokens=100, extra_headers=headers)
                return str(getattr(answer.content[0], "text", ""))
        async with self.world.openai("strict") as client:
            reply = await client.chat.completions.create(**question, max_completion_tokens=100, extra_headers=headers)
            return reply.choices[0].message.content or ""


def strict_app(kind: str, asked: list[Json], refused: list[Any], rules: Rules | None = None) -> Starlette:
    """The strict server of a kind, which notes what it was asked and what it refused. `rules` replace its own."""
    server = SERVERS[kind]

    def trouble(request: Request, *, needs_key: bool = True) -> Response | None:
        sent = request.headers.get(server.header, "").removeprefix("Bearer ")
        if sent != (SECRET if needs_key else ""):
            return JSONResponse({"error": {"message": f"wrong key in {server.header}"}}, 401)
        if server.query is not None and dict(request.query_params) != server.query:
            return JSONResponse({"error": {"code": "404", "message": "Resource not found"}}, 404)
        return None

    async def chat(request: Request) -> Response:
        body = json.loads(await request.body())
        asked.append(body)
        if (response := trouble(request)) is not None:
            return response
        for rule in rules or server.rules:
            if (refusal := rule(body)) is not None:
                refused.append(refusal)
                return JSONResponse(refusal[1], refusal[0])
        if server.header == "x-api-key":
            return JSONResponse({**MESSAGE, "usage": server.usage})
        return Response(stream(*SPOKEN, used(**server.usage)), media_type="text/event-stream")

    async def models(request: Request) -> Response:
        return trouble(request, needs_key=server.list_needs_key) or JSONResponse({"data": [{"id": "m"}]})

    routes = [
        Route(server.base + server.path, chat, methods=["POST"]),
        Route(server.base + server.models, models, methods=["GET"]),
    ]
    return Starlette(routes=routes)


@contextlib.asynccontextmanager
async def strict_server(kind: str, rules: Rules | None = None) -> AsyncIterator[KindWorld]:
    """`rules` replace those of the server of this kind."""
    asked, refused = list[Json](), list[Any]()
    async with serving(strict_app(kind, asked, refused, rules)) as url:
        env = {
            "BENCHYARD_PROVIDER_STRICT_KIND": kind,
            "BENCHYARD_PROVIDER_STRICT_BASE_URL": url + SERVERS[kind].base,
            "BENCHYARD_PROVIDER_STRICT_API_KEY": SECRET,
        }
        provider = providers_from_env(env)["strict"]
        upstream = HttpUpstream(provider, env, clock=SystemClock(), tls=TLS)
        context = run_context(provider="strict", model="m", slug="m", prices=PRICES)
        async with gateway(context, upstreams={"strict": upstream}) as world:
            yield KindWorld(world, provider, env, upstream, asked, refused)
            await upstream.close()


def test_every_kind_has_a_strict_server() -> None:
    assert set(SERVERS) == set(KINDS) - {GENERIC.name} - CLOUDS


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_kind_is_asked_in_its_form_at_once(kind: str) -> None:
    async with strict_server(kind) as world:
        fields = {} if kind == "anthropic" else {"seed": 7, "temperature": 0.5}
        assert await world.ask(**fields) == "Hello"
        assert (len(world.asked), world.refused) == (1, [])
        assert world.settled.usage == SERVERS[kind].counted
        assert world.settled.cost_nano_usd == cost_nano_usd(SERVERS[kind].counted, PRICES)
        assert [model.name for model in await list_models(world.provider, world.env, clock=SystemClock())] == ["m"]


async def test_the_seed_of_mistral_keeps_its_value() -> None:
    async with strict_server("mistral") as world:
        await world.ask(seed=7)
        assert world.asked[0]["random_seed"] == 7


async def test_what_a_kind_refuses_is_left_out_and_told() -> None:
    async with strict_server("groq") as world:
        assert await world.ask(logit_bias={"1": 2}) == "Hello"
        assert "logit_bias" not in world.asked[0]
        assert world.upstream.notes("m") == ["leaves out logit_bias, which Groq refuses"]


async def test_routing_options_reach_openrouter() -> None:
    async with strict_server("openrouter") as world:
        await world.ask(extra_body={"provider": {"order": ["x"], "allow_fallbacks": False}})
        assert world.asked[0]["provider"] == {"order": ["x"], "allow_fallbacks": False}


async def test_a_kind_is_only_what_is_known_beforehand() -> None:
    """A server that refuses the form of its kind is learned as any other."""
    async with strict_server("ollama", rules=SERVERS["openai"].rules) as world:
        assert await world.ask() == "Hello"
        assert [set(body) & {"max_tokens", "max_completion_tokens"} for body in world.asked] == [
            {"max_tokens"},
            {"max_completion_tokens"},
        ]


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [("KIND", "nonsense", "there is no kind nonsense"), ("LIST_PATH", "models", "must begin with a slash")],
)
def test_variables_that_make_no_sense_are_named(variable: str, value: str, words: str) -> None:
    env = {"BENCHYARD_PROVIDER_X_BASE_URL": "https://x.example", f"BENCHYARD_PROVIDER_X_{variable}": value}
    with pytest.raises(BadProvider, match=words):
        providers_from_env(env)


def test_a_path_and_a_version_can_be_given() -> None:
    env = {
        "BENCHYARD_PROVIDER_X_BASE_URL": "https://x.example",
        "BENCHYARD_PROVIDER_X_KIND": "azure_classic",
        "BENCHYARD_PROVIDER_X_API_VERSION": "2025-01-01-preview",
        "BENCHYARD_PROVIDER_X_LIST_PATH": "/all",
    }
    provider = providers_from_env(env)["x"]
    chat = provider.url(Protocol.OPENAI_CHAT, "/v1/chat/completions", "a b")
    assert chat == "https://x.example/openai/deployments/a%20b/chat/completions?api-version=2025-01-01-preview"
    assert provider.list_url == "https://x.example/all"


def test_responses_of_azure_stand_beside_its_chat() -> None:
    env = {"BENCHYARD_PROVIDER_X_BASE_URL": "https://x.example", "BENCHYARD_PROVIDER_X_KIND": "azure"}
    provider = providers_from_env(env)["x"]
    assert provider.url(Protocol.OPENAI_RESPONSES, "/v1/responses") == "https://x.example/openai/v1/responses"


@pytest.mark.parametrize(
    ("kind", "on", "sent"),
    [
        ("vllm", True, {"chat_template_kwargs": {"enable_thinking": True, "a": 1}}),
        ("deepseek", False, {"thinking": {"type": "disabled"}}),
        ("openrouter", True, {"reasoning": {"enabled": True}}),
        ("gemini", False, {"reasoning_effort": "none"}),
        ("groq", True, {}),
    ],
)
async def test_thinking_is_switched_as_the_kind_has_it(kind: str, on: bool, sent: Json) -> None:
    async with strict_server(kind) as world:
        extra = {"chat_template_kwargs": {"a": 1}} if kind == "vllm" else {}
        await world.ask(extra_body={THINKING_FIELD: on, **extra})
        names = ("chat_template_kwargs", "thinking", "reasoning", "reasoning_effort", THINKING_FIELD)
        assert {name: world.asked[0][name] for name in names if name in world.asked[0]} == sent
