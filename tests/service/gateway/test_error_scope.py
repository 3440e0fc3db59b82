"""Whom a provider's error concerns, from the bodies that OpenAI, Anthropic, LiteLLM, vLLM, llama-server and others send."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from orchestrator.gateway.upstream.error_scope import scope_of
from runner.contract.run_spec import ModelSpec, Protocol
from runner.errors import ProviderFailed
from runner.llm.client import LlmClient, Prompt, open_client
from tests.service.gateway.fake_provider import FakeProvider, Fault
from tests.service.gateway.test_upstream_through_sdks import provided

RUN: dict[str, tuple[int, dict[str, Any]]] = {
    "openai model": (
        404,
        {"message": "The model `x` does not exist or you do not have access to it.", "code": "model_not_found"},
    ),
    "openai key": (401, {"message": "Incorrect API key provided: sk-***", "code": "invalid_api_key"}),
    "openai parameter": (
        400,
        {
            "message": "Unsupported value: 'temperature' does not support 0.2",
            "param": "temperature",
            "code": "unsupported_value",
        },
    ),
    "openai system role": (
        400,
        {"message": "Unsupported value: 'messages[0].role'", "param": "messages[0].role", "code": "unsupported_value"},
    ),
    "openai max_tokens": (
        400,
        {
            "message": "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
            "param": "max_tokens",
            "code": "invalid_value",
        },
    ),
    "anthropic model": (404, {"type": "not_found_error", "message": "model: claude-x"}),
    "anthropic extra": (
        400,
        {"type": "invalid_request_error", "message": "output_config.effort: Extra inputs are not permitted"},
    ),
    "anthropic output": (
        400,
        {
            "type": "invalid_request_error",
            "message": "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-x",
        },
    ),
    "anthropic credit": (
        400,
        {"type": "invalid_request_error", "message": "Your credit balance is too low to access the Anthropic API."},
    ),
    "litellm model": (
        400,
        {
            "message": "{'error': '/chat/completions: Invalid model name passed in model=x. Call `/v1/models` to view'}",
            "type": "None",
            "param": "None",
            "code": "400",
        },
    ),
    "litellm no provider": (
        400,
        {"message": "litellm.BadRequestError: LLM Provider NOT provided. You passed model=x", "type": None, "code": "400"},
    ),
    "litellm parameter": (
        400,
        {
            "message": "litellm.UnsupportedParamsError: groq does not support parameters: ['reasoning_effort'], for model=x",
            "code": "400",
        },
    ),
    "litellm budget": (
        400,
        {"message": "Budget has been exceeded! Current cost: 2, Max budget: 1", "type": "budget_exceeded"},
    ),
    "vllm model": (
        404,
        {"object": "error", "message": "The model `x` does not exist.", "type": "NotFoundError", "code": 404},
    ),
    "vllm parameter": (
        400,
        {"message": "[{'type': 'extra_forbidden', 'loc': ('body', 'foo')}]", "type": "BadRequestError", "param": None},
    ),
    "vllm answer longer than the context": (
        400,
        {
            "message": "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is "
            "2048 tokens and your request has 57 input tokens (8192 > 2048 - 57).",
            "type": "BadRequestError",
        },
    ),
    "llama-server key": (401, {"code": 401, "message": "Invalid API Key", "type": "authentication_error"}),
    "wrong path": (404, {"message": "File Not Found", "type": "not_found_error"}),
    "wrong method": (405, {"message": "Method Not Allowed"}),
}
ITEM: dict[str, tuple[int, dict[str, Any]]] = {
    "openai context": (
        400,
        {
            "message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            "param": "messages",
            "code": "context_length_exceeded",
        },
    ),
    "openai prompt": (400, {"message": "Invalid prompt: your prompt was flagged", "code": "invalid_prompt"}),
    "azure filter": (
        400,
        {"message": "The response was filtered", "code": "content_filter", "param": "prompt", "innererror": {"code": "x"}},
    ),
    "azure inner": (400, {"message": "no", "code": None, "innererror": {"code": "ResponsibleAIPolicyViolation"}}),
    "anthropic context": (
        400,
        {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"},
    ),
    "anthropic both": (
        400,
        {
            "type": "invalid_request_error",
            "message": "input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000, decrease `max_tokens`",
        },
    ),
    "anthropic filter": (
        400,
        {"type": "invalid_request_error", "message": "Output blocked by content filtering policy"},
    ),
    "litellm context": (
        400,
        {"message": "litellm.ContextWindowExceededError: litellm.BadRequestError: too long for model=x", "code": "400"},
    ),
    "litellm policy": (400, {"message": "litellm.ContentPolicyViolationError: temperature of the debate", "code": "400"}),
    "vllm context": (
        400,
        {
            "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4500 in the "
            "messages, 500 in the completion).",
            "type": "BadRequestError",
            "code": 400,
        },
    ),
    "vllm answer too long for this prompt": (
        400,
        {
            "message": "'max_tokens' or 'max_completion_tokens' is too large: 1024. This model's maximum context length is "
            "2048 tokens and your request has 1500 input tokens",
        },
    ),
    "llama-server context": (
        400,
        {"code": 400, "message": "the request exceeds the available context size", "type": "exceed_context_size_error"},
    ),
    "openrouter moderation": (403, {"code": 403, "message": "Your input was flagged", "metadata": {"reasons": ["x"]}}),
    "too large": (413, {"message": "Request entity too large"}),
}
UNKNOWN: dict[str, tuple[int, dict[str, Any]]] = {
    "bare": (400, {"message": "Bad Request"}),
    "busy": (429, {"message": "temperature of the model is too high"}),
    "broken": (500, {"message": "model not found in cache"}),
    "empty": (422, {}),
}


@pytest.mark.parametrize(("status", "error"), RUN.values(), ids=list(RUN))
def test_of_the_run(status: int, error: dict[str, Any]) -> None:
    assert scope_of(status, error) == "run"


@pytest.mark.parametrize(("status", "error"), ITEM.values(), ids=list(ITEM))
def test_of_one_question(status: int, error: dict[str, Any]) -> None:
    assert scope_of(status, error) == "item"


@pytest.mark.parametrize(("status", "error"), UNKNOWN.values(), ids=list(UNKNOWN))
def test_unknown(status: int, error: dict[str, Any]) -> None:
    assert scope_of(status, error) == "unknown"


@contextlib.asynccontextmanager
async def client(base: str, protocol: Protocol) -> AsyncIterator[LlmClient]:
    """The runner's own client over the provider's SDK."""
    claude = protocol is Protocol.ANTHROPIC
    provider, name = ("anthropic", "claude-test") if claude else ("openai", "gpt-test")
    model = ModelSpec(slug=name, provider=provider, name=name, protocol=protocol, max_tokens=100)
    found = open_client(model, base, "run-token" if claude else "run-token-2")
    try:
        yield found
    finally:
        await found.close()


@pytest.mark.anyio
@pytest.mark.parametrize("patience_s", [20.0, 0.01], ids=["at once", "within a stream"])
@pytest.mark.parametrize("protocol", list(Protocol))
async def test_a_runner_learns_it_through_the_sdks(protocol: Protocol, patience_s: float) -> None:
    """Whether the error comes as a status or within a stream that has begun with pings."""
    fake = FakeProvider(seconds=0.3 if patience_s < 1 else 0.0)
    cases = [*RUN.values(), *list(ITEM.values())[:4], *list(UNKNOWN.values())[:1]]
    wanted = ["run"] * len(RUN) + ["item"] * 4 + ["unknown"]
    if patience_s < 1:
        cases, wanted = cases[:2] + cases[-5:-3] + cases[-1:], ["run", "run", "item", "item", "unknown"]
    async with (
        provided(fake, patience_s=patience_s) as (world, _),
        client(world.base("x").rsplit("/", 1)[0], protocol) as llm,
    ):
        seen = []
        for number, (status, error) in enumerate(cases):
            fake.faults.append(Fault("status", status, body={"error": error}))
            with pytest.raises(ProviderFailed) as failed:
                await llm.complete(Prompt("", f"question {number}", "v"), f"bench/{number}/0/0")
            seen.append(failed.value.scope)
            said = str(error.get("message", ""))[:40]
            assert said in str(failed.value), "the provider's own sentence comes along"
    assert seen == wanted
