"""Strict servers, one per kind of provider: each refuses what the real one refuses. Each rule cites its document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.gateway.protocols.protocol import TokenUsage

Json = dict[str, Any]
Refusal = tuple[int, Json] | None
Rules = tuple[Callable[[Json], Refusal], ...]

STANDARD = (
    *("model", "messages", "stream", "stream_options", "temperature", "top_p", "stop", "seed", "n"),
    *("max_tokens", "max_completion_tokens", "presence_penalty", "frequency_penalty", "logit_bias"),
)


def error(status: int, message: str, param: str | None = None) -> Refusal:
    return status, {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": None}}


def forbids(*names: str, status: int = 400) -> Callable[[Json], Refusal]:
    def rule(body: Json) -> Refusal:
        name = next((name for name in names if name in body), None)
        return None if name is None else error(status, f"property '{name}' is unsupported", name)

    return rule


def needs(name: str) -> Callable[[Json], Refusal]:
    """For servers that ignore the other name of the limit: an unlimited answer is as bad as a refusal."""
    return lambda body: None if name in body else error(418, f"the server saw no {name}")


def only(*names: str) -> Callable[[Json], Refusal]:
    allowed = {"model", "messages", "stream", *names}

    def rule(body: Json) -> Refusal:
        extra = sorted(set(body) - allowed)
        return error(422, f"Extra inputs are not permitted: {extra[0]}") if extra else None

    return rule


USAGE: Json = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
DETAILED: Json = {
    **{"prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130},
    "prompt_tokens_details": {"cached_tokens": 60},
    "completion_tokens_details": {"reasoning_tokens": 20},
}
PLAINLY = TokenUsage(3, 2)
IN_DETAIL = TokenUsage(100, 30, cached_tokens=60, reasoning_tokens=20)


@dataclass(frozen=True)
class Strict:
    """`path` is that of the chat below the base URL, `query` what it must have; `header` carries the key. `usage` is how
    this server counts an answer, `counted` what it means."""

    base: str
    path: str
    rules: Rules = ()
    header: str = "authorization"
    models: str = "/models"
    query: Mapping[str, str] | None = None
    list_needs_key: bool = True
    usage: Json = field(default_factory=lambda: dict(USAGE))
    counted: TokenUsage = PLAINLY


SERVERS: dict[str, Strict] = {
    # https://platform.openai.com/docs/api-reference/chat/create: max_tokens is not compatible with reasoning models
    "openai": Strict("/v1", "/chat/completions", (forbids("max_tokens", "top_k"),), usage=DETAILED, counted=IN_DETAIL),
    # https://docs.anthropic.com/en/api/messages: x-api-key and anthropic-version; max_tokens is required
    # and https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching: input_tokens are those after the cache
    "anthropic": Strict(
        "",
        "/v1/messages",
        (needs("max_tokens"),),
        header="x-api-key",
        models="/v1/models",
        usage={"input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30, "output_tokens": 7},
        counted=TokenUsage(100, 7, cached_tokens=60, cache_write_tokens=30),
    ),
    # https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle: /openai/v1, no api-version, header api-key
    "azure": Strict(
        "", "/openai/v1/chat/completions", (forbids("max_tokens"),), header="api-key", models="/openai/v1/models", query={}
    ),
    # https://learn.microsoft.com/azure/ai-foundry/openai/reference: the deployment is in the path, api-version is required
    "azure_classic": Strict(
        "",
        "/openai/deployments/m/chat/completions",
        header="api-key",
        models="/openai/models",
        query={"api-version": "2024-10-21"},
    ),
    # https://docs.mistral.ai/api: max_tokens and random_seed; a field that is not in the schema is answered with 422
    "mistral": Strict("/v1", "/chat/completions", (only("max_tokens", "random_seed", "temperature", "top_p", "stop"),)),
    # https://api-docs.deepseek.com/api/create-chat-completion: max_tokens, stream_options; cache hits and misses
    "deepseek": Strict(
        "",
        "/chat/completions",
        (needs("max_tokens"),),
        usage={
            **{"prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130},
            **{"prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40},
            "completion_tokens_details": {"reasoning_tokens": 20},
        },
        counted=IN_DETAIL,
    ),
    # https://docs.x.ai/docs/api-reference: max_completion_tokens; max_tokens is deprecated
    # https://docs.x.ai/docs/guides/reasoning: reasoning tokens are in the total, not among the completion's
    "xai": Strict(
        "/v1",
        "/chat/completions",
        (needs("max_completion_tokens"),),
        usage={**DETAILED, "completion_tokens": 10},
        counted=IN_DETAIL,
    ),
    # https://console.groq.com/docs/openai: logprobs, logit_bias, top_logprobs give 400
    "groq": Strict("/openai/v1", "/chat/completions", (forbids("logprobs", "logit_bias", "top_logprobs"),)),
    # https://docs.together.ai/reference/chat-completions-1: max_tokens is the only limit
    "together": Strict("/v1", "/chat/completions", (needs("max_tokens"),)),
    # https://docs.fireworks.ai/api-reference/post-chatcompletions: one of the two names, never both
    "fireworks": Strict("/inference/v1", "/chat/completions", (needs("max_tokens"), forbids("max_completion_tokens"))),
    # https://openrouter.ai/docs/api-reference/overview: max_tokens; the list of models is public
    "openrouter": Strict("/api/v1", "/chat/completions", (needs("max_tokens"),), list_needs_key=False),
    # https://docs.ollama.com/api/openai-compatibility: the supported fields have max_tokens only
    "ollama": Strict("/v1", "/chat/completions", (needs("max_tokens"),)),
    # https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html: max_tokens is deprecated
    "vllm": Strict("/v1", "/chat/completions", (needs("max_completion_tokens"),)),
    # https://docs.sglang.ai/basic_usage/openai_api_completions.html: the parameters of OpenAI's API
    "sglang": Strict("/v1", "/chat/completions", (only(*STANDARD),)),
    # https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md: max_tokens
    "llama_cpp": Strict("/v1", "/chat/completions", (needs("max_tokens"),)),
    # https://lmstudio.ai/docs/app/api/endpoints/openai: the supported payload has max_tokens only
    "lm_studio": Strict("/v1", "/chat/completions", (needs("max_tokens"),)),
    # https://docs.litellm.ai/docs/completion/drop_params: a field that the model behind it lacks is refused by name
    "litellm": Strict("/v1", "/chat/completions", (forbids("max_tokens"),)),
    # https://ai.google.dev/gemini-api/docs/openai: unknown fields give 400 with their name
    # https://ai.google.dev/gemini-api/docs/thinking: thoughts are in the total, not among the completion's
    "gemini": Strict(
        "/v1beta/openai",
        "/chat/completions",
        (forbids("seed", "logit_bias"),),
        usage={"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 130},
        counted=TokenUsage(100, 30),
    ),
}
"""Those that only differ in their paths, keys and fields. For Bedrock and Vertex: `cloud_servers`."""
