"""The real SDKs against a real server: requests as the providers want them, answers in one shape, errors told apart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from fastapi.responses import JSONResponse, Response

from runner.contract.run_spec import ModelSpec
from runner.errors import BudgetExhausted, CallError, GatewayAway, ProviderFailed
from runner.llm.client import Completion, Finish, LlmClient, Prompt, open_client
from tests.service.runner.fake_orchestrator import (
    RUN_TOKEN,
    FakeOrchestrator,
    chat_stream,
    message_stream,
    response_stream,
    sse,
)

pytestmark = pytest.mark.anyio

PROMPT = Prompt("Be right.", "Twice two?", "v1")
PROTOCOLS = ["anthropic", "openai_chat", "openai_responses"]


Ask = Callable[..., Awaitable[Completion]]


@pytest.fixture(scope="module")
async def clients() -> AsyncIterator[dict[str, LlmClient]]:
    """Clients that tests share, by address and model: making one costs more than using it."""
    made: dict[str, LlmClient] = {}
    yield made
    for client in made.values():
        await client.close()


@pytest.fixture
def ask(clients: dict[str, LlmClient], orchestrator: FakeOrchestrator) -> Ask:
    async def ask(protocol: str, answer: Callable[[], Response], url: str = "", **more: Any) -> Completion:
        orchestrator.answer = lambda key, body: answer()
        model = {"slug": "m", "provider": "demo", "name": "demo-1", "protocol": protocol, "max_tokens": 100, **more}
        spec = ModelSpec.model_validate(model)
        key = url + spec.model_dump_json()
        if key not in clients:
            clients[key] = open_client(spec, f"{url or orchestrator.url}/gateway", RUN_TOKEN)
        async with asyncio.timeout(60):
            return await clients[key].complete(PROMPT, "sample/p/0/0")

    return ask


def plain(protocol: str, text: str = "four", **more: Any) -> Response:
    return {"anthropic": message_stream, "openai_chat": chat_stream, "openai_responses": response_stream}[protocol](
        text, **more
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_answer(ask: Ask, orchestrator: FakeOrchestrator, protocol: str) -> None:
    got = await ask(protocol, lambda: plain(protocol, headers={"x-benchyard-replayed": "1"}))
    assert (got.text, got.finish, got.replayed) == ("four", Finish.STOP, True)
    assert (got.output_tokens, got.cached_tokens, got.reasoning_tokens) == (7, 4, 3)
    assert got.input_tokens == (15 if protocol == "anthropic" else 10)
    assert got.latency_s > 0
    key, body, headers = orchestrator.calls[0]
    assert key == "sample/p/0/0"
    assert headers["authorization"] == f"Bearer {RUN_TOKEN}"
    assert body["stream"] is True
    assert not {"temperature", "top_p", "thinking", "reasoning", "reasoning_effort", "output_config"} & set(body)
    assert "Be right." in str(body)
    assert "Twice two?" in str(body)


async def test_options_anthropic(ask: Ask, orchestrator: FakeOrchestrator) -> None:
    options = {"temperature": 0.5, "top_p": 0.9, "thinking_budget": 1024, "effort": "high", "max_tokens": 64_000}
    got = await ask("anthropic", lambda: message_stream("four", thinking="hm"), **options)
    assert got.thinking == "hm"
    body = orchestrator.calls[0][1]
    assert (body["temperature"], body["top_p"], body["max_tokens"]) == (0.5, 0.9, 64_000)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    assert body["output_config"] == {"effort": "high"}
    assert body["system"] == "Be right."


async def test_options_openai(ask: Ask, orchestrator: FakeOrchestrator) -> None:
    options = {"temperature": 0.5, "effort": "low"}
    await ask("openai_chat", lambda: chat_stream("four"), **options)
    await ask("openai_responses", lambda: response_stream("four"), **options)
    chat, responses = (body for _, body, _ in orchestrator.calls)
    assert (chat["temperature"], chat["reasoning_effort"], chat["max_completion_tokens"]) == (0.5, "low", 100)
    assert (responses["temperature"], responses["reasoning"], responses["max_output_tokens"]) == (
        0.5,
        {"effort": "low"},
        100,
    )


async def test_more_options(ask: Ask, orchestrator: FakeOrchestrator) -> None:
    options = {
        "top_k": 40,
        "seed": 7,
        "stop": ["END", "\n\n"],
        "system_prompt": "Speak plainly.",
        "extra_body": {"chat_template_kwargs": {"enable_thinking": False}},
    }
    await ask("openai_chat", lambda: chat_stream("four"), **options)
    await ask("openai_responses", lambda: response_stream("four"), **options)
    await ask("anthropic", lambda: message_stream("four"), **options)
    chat, responses, messages = (body for _, body, _ in orchestrator.calls)
    for body in (chat, responses):
        assert (body["top_k"], body["seed"], body["stop"]) == (40, 7, ["END", "\n\n"])
    assert (messages["top_k"], messages["stop_sequences"]) == (40, ["END", "\n\n"])
    assert all(body["chat_template_kwargs"] == {"enable_thinking": False} for body in (chat, responses, messages))
    system = "Speak plainly.\n\nBe right."
    assert (chat["messages"][0]["content"], responses["instructions"], messages["system"]) == (system,) * 3


ENDINGS: dict[str, tuple[str, Callable[[], Response], Finish]] = {
    "anthropic length": ("anthropic", lambda: message_stream("x", "max_tokens"), Finish.LENGTH),
    "anthropic context": ("anthropic", lambda: message_stream("x", "model_context_window_exceeded"), Finish.LENGTH),
    "anthropic refusal": ("anthropic", lambda: message_stream("x", "refusal"), Finish.REFUSAL),
    "anthropic new": ("anthropic", lambda: message_stream("x", "pause_turn"), Finish.OTHER),
    "chat length": ("openai_chat", lambda: chat_stream("x", "length"), Finish.LENGTH),
    "chat filter": ("openai_chat", lambda: chat_stream("x", "content_filter"), Finish.REFUSAL),
    "chat new": ("openai_chat", lambda: chat_stream("x", "tool_calls"), Finish.OTHER),
    "responses length": ("openai_responses", lambda: response_stream("x", "incomplete"), Finish.LENGTH),
    "responses refusal": ("openai_responses", lambda: response_stream("x", "refused"), Finish.REFUSAL),
}


@pytest.mark.parametrize(("protocol", "answer", "finish"), ENDINGS.values(), ids=ENDINGS)
async def test_why_it_stopped(
    ask: Ask, orchestrator: FakeOrchestrator, protocol: str, answer: Callable[[], Response], finish: Finish
) -> None:
    assert (await ask(protocol, answer)).finish is finish


def problem(status: int, code: str, message: str = "no") -> Response:
    return JSONResponse({"error": {"type": "x", "code": "own_code", "message": message}, "code": code}, status)


ERRORS: dict[str, tuple[Callable[[str], Response], type[CallError]]] = {
    "bad gateway": (lambda p: Response("<html>", 502), GatewayAway),
    "unavailable": (lambda p: problem(503, "UNAVAILABLE"), GatewayAway),
    "dead run token": (lambda p: problem(401, "UNAUTHORIZED"), GatewayAway),
    "gateway time-out": (lambda p: Response("", 504), GatewayAway),
    "provider gave out": (lambda p: problem(502, "EXTERNAL_API_ERROR"), ProviderFailed),
    "provider crowded": (lambda p: problem(429, "RATE_LIMITED"), ProviderFailed),
    "bad request": (
        lambda p: JSONResponse({"error": {"type": "invalid_request_error", "message": "no"}}, 400),
        ProviderFailed,
    ),
    "wrong key": (lambda p: problem(401, "PROVIDER_KEY_REFUSED"), ProviderFailed),
    "server error": (lambda p: Response("oops", 500), ProviderFailed),
    "budget": (lambda p: problem(402, "BUDGET_EXHAUSTED"), BudgetExhausted),
    "budget by code": (lambda p: problem(403, "BUDGET_EXHAUSTED"), BudgetExhausted),
    "cut stream": (lambda p: plain(p, cut=True, **({"stop": None} if p == "anthropic" else ENDLESS[p])), GatewayAway),
    "short stream": (lambda p: plain(p, **({"stop": None} if p == "anthropic" else ENDLESS[p])), GatewayAway),
    "nothing": (lambda p: sse([]), GatewayAway),
    "error in the stream": (lambda p: sse([told("EXTERNAL_API_ERROR")]), ProviderFailed),
    "away in the stream": (lambda p: sse([told("UNAVAILABLE")]), GatewayAway),
    "budget in the stream": (lambda p: sse([told("BUDGET_EXHAUSTED")]), BudgetExhausted),
}
ENDLESS: dict[str, dict[str, Any]] = {"openai_chat": {"finish": None}, "openai_responses": {"status": ""}}


def told(code: str) -> tuple[str, Any]:
    body = {"type": "api_error", "message": "no", "code": code, "details": {"error_code": code}}
    return "error", {"type": "error", "error": body, "code": code, "status": 503}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("answer", "error"), ERRORS.values(), ids=ERRORS)
async def test_errors_are_told_apart(
    ask: Ask, orchestrator: FakeOrchestrator, protocol: str, answer: Callable[[str], Response], error: type[CallError]
) -> None:
    with pytest.raises(error):
        await ask(protocol, lambda: answer(protocol))
    assert len(orchestrator.calls) == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_nobody_there(ask: Ask, protocol: str) -> None:
    with pytest.raises(GatewayAway):
        await ask(protocol, Response, url="http://127.0.0.1:9")


async def test_a_refused_key_is_hopeless(ask: Ask, orchestrator: FakeOrchestrator) -> None:
    with pytest.raises(ProviderFailed) as caught:
        await ask("openai_chat", lambda: problem(502, "PROVIDER_KEY_REFUSED", "wrong key"))
    assert caught.value.hopeless
    assert "wrong key" in str(caught.value)


async def test_a_failed_response(ask: Ask, orchestrator: FakeOrchestrator) -> None:
    with pytest.raises(ProviderFailed, match="it broke"):
        await ask("openai_responses", lambda: response_stream("x", "failed"))
