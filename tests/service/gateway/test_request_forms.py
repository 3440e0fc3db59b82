"""Servers that refuse what others require: the gateway learns the form that each of them accepts, once, and says so."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import openai
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orchestrator.gateway.upstream.http_upstream import HttpUpstream
from orchestrator.gateway.upstream.providers import providers_from_env
from orchestrator.system.clock import SystemClock
from tests.service.gateway.gateway_parts import World, gateway, key, run_context
from tests.service.gateway.gateway_server import serving
from tests.service.gateway.odd_provider import HELLO, TLS

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
Rule = Callable[[Json], tuple[int, Json] | None]
"""What a server refuses: the status and body of its answer, or None."""
WHOLE = {
    "id": "c1",
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}


def mistral(body: Json) -> tuple[int, Json] | None:
    """https://docs.mistral.ai/api: `max_tokens`; other fields are forbidden."""
    for name in ("max_completion_tokens", "stream_options"):
        if name in body:
            detail = [{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}]
            return 422, {"object": "error", "message": {"detail": detail}, "type": "invalid_request_error"}
    return None


def old_vllm(body: Json) -> tuple[int, Json] | None:
    """vLLM before 0.6 forbade fields that it did not know, and printed pydantic's errors as a text."""
    for name in ("stream_options", "max_completion_tokens"):
        if name in body:
            message = f"[{{'type': 'extra_forbidden', 'loc': ('body', '{name}'), 'msg': 'Extra inputs are not permitted'}}]"
            return 400, {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}
    return None


def reasoning_model(body: Json) -> tuple[int, Json] | None:
    """https://platform.openai.com/docs/guides/reasoning: neither `max_tokens` nor a temperature other than 1."""
    if "max_tokens" in body:
        sentence = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        return 400, _openai_error(sentence, "max_tokens", "unsupported_parameter")
    if body.get("temperature", 1) != 1:
        sentence = (
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) is supported."
        )
        return 400, _openai_error(sentence, "temperature", "unsupported_value")
    return None


def no_stream(body: Json) -> tuple[int, Json] | None:
    """What OpenAI answers to organisations that it has not verified."""
    if body.get("stream"):
        sentence = "Your organization must be verified to stream this model."
        return 400, _openai_error(sentence, "stream", "unsupported_value")
    return None


def says_only_words(body: Json) -> tuple[int, Json] | None:
    """A server of somebody's own."""
    if body.get("stream"):
        return 501, {"detail": "Streaming is not implemented on this server"}
    if "max_completion_tokens" in body:
        return 400, {"detail": "unexpected keyword argument: max_completion_tokens"}
    return None


def _openai_error(message: str, param: str, code: str) -> Json:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


class StrictWorld:
    def __init__(self, world: World, upstream: HttpUpstream, asked: list[Json]) -> None:
        self._world, self.upstream, self.asked, self._number = world, upstream, asked, 0

    async def ask(self, **fields: Any) -> str:
        self._number += 1
        question: Json = {"messages": [{"role": "user", "content": f"hi {self._number}"}], "max_completion_tokens": 100}
        async with self._world.openai("strict") as client:
            answer = await client.chat.completions.create(
                model="m", **{**question, **fields}, extra_headers=key(f"b/p/{self._number}/0")
            )
            return answer.choices[0].message.content or ""


@contextlib.asynccontextmanager
async def strict(*rules: Rule, answer: Json | None = None) -> AsyncIterator[StrictWorld]:
    asked: list[Json] = []

    async def serve(request: Request) -> Response:
        body = json.loads(await request.body())
        asked.append(body)
        for rule in rules:
            if (refusal := rule(body)) is not None:
                return JSONResponse(refusal[1], refusal[0])
        if body.get("stream") and answer is None:
            return Response(HELLO, media_type="text/event-stream")
        return JSONResponse(answer or WHOLE)

    async with serving(Starlette(routes=[Route("/v1/chat/completions", serve, methods=["POST"])])) as url:
        env = {"BENCHYARD_PROVIDER_STRICT_BASE_URL": f"{url}/v1", "BENCHYARD_PROVIDER_STRICT_API_KEY": "x"}
        upstream = HttpUpstream(providers_from_env(env)["strict"], env, clock=SystemClock(), tls=TLS)
        async with gateway(run_context(provider="strict", model="m", slug="m"), upstreams={"strict": upstream}) as world:
            yield StrictWorld(world, upstream, asked)
            await upstream.close()


LEARNED: dict[str, tuple[Rule, Json, int, set[str], list[str]]] = {
    "mistral": (mistral, {}, 3, {"max_tokens", "stream"}, ["stream_options", "max_tokens"]),
    "old vllm": (old_vllm, {}, 3, {"max_tokens", "stream"}, ["stream_options", "max_tokens"]),
    "reasoning": (
        reasoning_model,
        {"max_completion_tokens": openai.NOT_GIVEN, "max_tokens": 100, "temperature": 0.2},
        3,
        {"max_completion_tokens", "stream", "stream_options"},
        ["max_completion_tokens", "temperature"],
    ),
    "no stream": (no_stream, {}, 2, {"max_completion_tokens"}, ["does not stream"]),
    "only words": (says_only_words, {}, 3, {"max_tokens"}, ["does not stream", "max_tokens"]),
}


@pytest.mark.parametrize("name", LEARNED)
async def test_what_a_server_refuses_is_learned_once(name: str) -> None:
    rule, fields, requests, accepted, words = LEARNED[name]
    async with strict(rule) as world:
        assert await world.ask(**fields) == "Hello"
        assert len(world.asked) == requests
        assert set(world.asked[-1]) - {"model", "messages"} == accepted
        assert await world.ask(**fields) == "Hello"
        assert len(world.asked) == requests + 1, "the second call is sent in the right form at once"
        notes = " ".join(world.upstream.notes("m"))
        assert all(word in notes for word in words), notes
        assert world.upstream.notes("another") == []


async def test_a_server_that_accepts_everything_is_asked_once() -> None:
    async with strict() as world:
        assert await world.ask() == "Hello"
        assert [set(body) - {"model", "messages"} for body in world.asked] == [
            {"max_completion_tokens", "stream", "stream_options"}
        ]
        assert world.upstream.notes("m") == []


NOT_A_FORM: dict[str, tuple[int, Json]] = {
    "the limit is too large": (
        400,
        _openai_error("max_tokens is too large: 100. This model supports at most 50 tokens.", "max_completion_tokens", "x"),
    ),
    "the prompt is too long": (
        400,
        {
            "message": "'max_completion_tokens' is too large: 100. This model's maximum context length is 4096 tokens and "
            "your request has 4000 input tokens"
        },
    ),
    "a filter": (400, _openai_error("the streamed prompt was flagged by our content filter", "prompt", "content_filter")),
    "no such model": (404, _openai_error("The model `m` does not exist", "model", "model_not_found")),
    "no reason": (400, {}),
}


@pytest.mark.parametrize("name", NOT_A_FORM)
async def test_other_refusals_are_passed_on_at_once(name: str) -> None:
    async with strict(lambda body: NOT_A_FORM[name]) as world:
        with pytest.raises(openai.APIStatusError):
            await world.ask()
        assert len(world.asked) == 1
        assert world.upstream.notes("m") == []


async def test_a_server_that_takes_neither_name_is_quoted_with_its_first_refusal() -> None:
    def neither(body: Json) -> tuple[int, Json] | None:
        for name in ("max_completion_tokens", "max_tokens"):
            if name in body:
                return 400, {"error": {"message": f"unknown field {name}"}}
        return None

    async with strict(neither) as world:
        with pytest.raises(openai.BadRequestError, match="unknown field max_completion_tokens"):
            await world.ask()
        assert len(world.asked) == 2
        assert world.upstream.notes("m") == []


async def test_a_server_that_changed_its_mind_is_learned_anew() -> None:
    rules: list[Rule] = [mistral]

    def newest(body: Json) -> tuple[int, Json] | None:
        return rules[-1](body)

    async with strict(newest) as world:
        await world.ask()
        rules.append(reasoning_model)
        assert await world.ask() == "Hello"
        assert "max_completion_tokens" in world.asked[-1]


async def test_an_ignored_limit_is_sent_by_its_older_name_and_then_reported() -> None:
    """https://api-docs.deepseek.com: `max_tokens`; other names are ignored."""
    long = {**WHOLE, "usage": {"prompt_tokens": 3, "completion_tokens": 500, "total_tokens": 503}}
    async with strict(answer=long) as world:
        await world.ask()
        assert "ignores" in " ".join(world.upstream.notes("m"))
        await world.ask()
        assert world.asked[-1]["max_tokens"] == 100
        assert "500 tokens where 100 were allowed" in " ".join(world.upstream.notes("m"))
