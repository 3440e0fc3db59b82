"""The kinds of servers, as a small table of differences. Pure data: one frozen value per kind, with its source.

A kind says what is known beforehand: where the server is, what its paths and fields are called, what it refuses, how it
wants its key. Whatever else a server refuses is learned from its refusals (`request_forms`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.gateway.upstream.kinds.request_forms import Adjustment
from runner.contract.run_spec import Protocol


class Auth(StrEnum):
    """How a server wants its key."""

    USUAL = "usual"  #: that of the protocol: `x-api-key` for Anthropic's, `Authorization: Bearer` for OpenAI's
    API_KEY = "api-key"  #: the header `api-key`
    AWS = "aws"  #: a signature (SigV4) by a pair of access keys, or `Authorization: Bearer` with an API key
    GOOGLE = "google"  #: `Authorization: Bearer` with a token that a service account's key buys


EXCHANGED = frozenset({Auth.AWS, Auth.GOOGLE})
"""The key itself may not be what is sent."""


class Dialect(StrEnum):
    """How a server's requests and answers differ from those of the protocol (`dialects`)."""

    PLAIN = "plain"  #: they do not
    CONVERSE = "converse"  #: Amazon Bedrock's Converse in place of chat completions
    MODEL_IN_PATH = "model_in_path"  #: Anthropic's messages with the model in the path and the version in the body


class Thinking(StrEnum):
    """How a server is told to think, or not to, before it answers."""

    TEMPLATE = "template"  #: `chat_template_kwargs: {"enable_thinking": true}`
    OBJECT = "object"  #: `thinking: {"type": "enabled"}`
    REASONING = "reasoning"  #: `reasoning: {"enabled": true}`
    EFFORT = "effort"  #: `reasoning_effort: "none"` switches it off; on is the server's default
    BUDGET = "budget"  #: `thinking: {"type": "enabled", "budget_tokens": ...}`, half of the token limit


CHAT = frozenset({Protocol.OPENAI_CHAT})
CHAT_AND_RESPONSES = frozenset({Protocol.OPENAI_CHAT, Protocol.OPENAI_RESPONSES})
MESSAGES = frozenset({Protocol.ANTHROPIC})
OLDER_LIMIT = frozenset({Adjustment.MAX_TOKENS})
BEDROCK_REFUSES = frozenset({"seed", "n", "logprobs", "top_logprobs", "logit_bias", "presence_penalty", "frequency_penalty"})


@dataclass(frozen=True)
class Kind:
    """`{model}` and `{api_version}` in a path are replaced. An empty `base_url` must be given by the operator."""

    name: str
    title: str
    source: str
    base_url: str = ""
    protocols: frozenset[Protocol] = CHAT_AND_RESPONSES
    chat_path: str = "/chat/completions"
    whole_path: str = ""
    """That of answers in one piece, where it is another."""
    list_path: str = "/models"
    """Empty: it lists none."""
    api_version: str = ""
    auth: Auth = Auth.USUAL
    key_needed: bool = False
    list_without_key: bool = False
    thinking: Thinking = Thinking.TEMPLATE
    form: frozenset[Adjustment] = frozenset()
    dialect: Dialect = Dialect.PLAIN
    version_in_body: str = ""
    """`anthropic_version` in the body, for `MODEL_IN_PATH`."""
    refused: frozenset[str] = frozenset()
    """Fields that are left out of every request, because the server refuses the request otherwise."""

    @property
    def batches(self) -> bool:
        """Whether it may have batches of OpenAI's or Anthropic's form."""
        return self.auth not in EXCHANGED


GENERIC = Kind("openai_compatible", "OpenAI-compatible", "https://platform.openai.com/docs/api-reference/chat")

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        GENERIC,
        Kind(
            "openai",
            "OpenAI",
            "https://platform.openai.com/docs/api-reference/chat",
            base_url="https://api.openai.com/v1",
            key_needed=True,
            thinking=Thinking.EFFORT,
        ),
        Kind(
            "anthropic",
            "Anthropic",
            "https://docs.anthropic.com/en/api/messages",
            base_url="https://api.anthropic.com",
            protocols=MESSAGES,
            chat_path="/v1/messages",
            list_path="/v1/models",
            key_needed=True,
        ),
        Kind(
            "azure",
            "Azure OpenAI (v1)",
            "https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle",
            chat_path="/openai/v1/chat/completions",
            list_path="/openai/v1/models",
            auth=Auth.API_KEY,
            key_needed=True,
            thinking=Thinking.EFFORT,
        ),
        Kind(
            "azure_classic",
            "Azure OpenAI (deployments)",
            "https://learn.microsoft.com/azure/ai-foundry/openai/reference",
            protocols=CHAT,
            chat_path="/openai/deployments/{model}/chat/completions?api-version={api_version}",
            list_path="/openai/models?api-version={api_version}",
            api_version="2024-10-21",
            auth=Auth.API_KEY,
            key_needed=True,
            thinking=Thinking.EFFORT,
        ),
        Kind(
            "mistral",
            "Mistral",
            "https://docs.mistral.ai/api",
            base_url="https://api.mistral.ai/v1",
            protocols=CHAT,
            key_needed=True,
            form=OLDER_LIMIT | {Adjustment.NO_STREAM_OPTIONS, Adjustment.RANDOM_SEED},
            refused=frozenset({"top_k", "logit_bias", "logprobs", "top_logprobs"}),
            thinking=Thinking.EFFORT,
        ),
        Kind(
            "deepseek",
            "DeepSeek",
            "https://api-docs.deepseek.com/api/create-chat-completion",
            base_url="https://api.deepseek.com",
            protocols=CHAT,
            key_needed=True,
            form=OLDER_LIMIT,
            thinking=Thinking.OBJECT,
        ),
        Kind(
            "xai",
            "xAI",
            "https://docs.x.ai/docs/api-reference",
            base_url="https://api.x.ai/v1",
            key_needed=True,
            thinking=Thinking.EFFORT,
        ),
        Kind(
            "groq",
            "Groq",
            "https://console.groq.com/docs/openai",
            base_url="https://api.groq.com/openai/v1",
            key_needed=True,
            refused=frozenset({"logprobs", "logit_bias", "top_logprobs"}),
            thinking=Thinking.EFFORT,
        ),
        Kind(
            "together",
            "Together AI",
            "https://docs.together.ai/reference/chat-completions-1",
            base_url="https://api.together.xyz/v1",
            protocols=CHAT,
            key_needed=True,
            form=OLDER_LIMIT,
            thinking=Thinking.REASONING,
        ),
        Kind(
            "fireworks",
            "Fireworks AI",
            "https://docs.fireworks.ai/api-reference/post-chatcompletions",
            base_url="https://api.fireworks.ai/inference/v1",
            key_needed=True,
            form=OLDER_LIMIT,
            thinking=Thinking.EFFORT,
        ),
        Kind(
            "openrouter",
            "OpenRouter",
            "https://openrouter.ai/docs/api-reference/overview",
            base_url="https://openrouter.ai/api/v1",
            protocols=CHAT,
            key_needed=True,
            list_without_key=True,
            form=OLDER_LIMIT,
            thinking=Thinking.REASONING,
        ),
        Kind(
            "ollama",
            "Ollama",
            "https://docs.ollama.com/api/openai-compatibility",
            base_url="http://127.0.0.1:11434/v1",
            form=OLDER_LIMIT,
            thinking=Thinking.EFFORT,
        ),
        Kind("vllm", "vLLM", "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html"),
        Kind("sglang", "SGLang", "https://docs.sglang.ai/basic_usage/openai_api_completions.html", protocols=CHAT),
        Kind(
            "llama_cpp",
            "llama.cpp",
            "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
            base_url="http://127.0.0.1:8080/v1",
            protocols=CHAT,
            form=OLDER_LIMIT,
        ),
        Kind(
            "lm_studio",
            "LM Studio",
            "https://lmstudio.ai/docs/app/api/endpoints/openai",
            base_url="http://127.0.0.1:1234/v1",
            form=OLDER_LIMIT,
            thinking=Thinking.EFFORT,
        ),
        Kind("litellm", "LiteLLM proxy", "https://docs.litellm.ai/docs/proxy/user_keys", thinking=Thinking.OBJECT),
        Kind(
            "gemini",
            "Gemini (OpenAI-compatible)",
            "https://ai.google.dev/gemini-api/docs/openai",
            base_url="https://generativelanguage.googleapis.com/v1beta/openai",
            protocols=CHAT,
            key_needed=True,
            refused=frozenset({"seed", "logit_bias"}),
            thinking=Thinking.EFFORT,
        ),
        Kind(
            "vertex",
            "Vertex AI (OpenAI-compatible)",
            "https://cloud.google.com/vertex-ai/generative-ai/docs/start/openai",
            protocols=CHAT,
            list_path="",
            auth=Auth.GOOGLE,
            key_needed=True,
            refused=frozenset({"seed", "logit_bias"}),
            thinking=Thinking.EFFORT,
        ),
        Kind(
            "vertex_anthropic",
            "Claude on Vertex AI",
            "https://docs.anthropic.com/en/api/claude-on-vertex-ai",
            protocols=MESSAGES,
            chat_path="/publishers/anthropic/models/{model}:streamRawPredict",
            whole_path="/publishers/anthropic/models/{model}:rawPredict",
            list_path="",
            auth=Auth.GOOGLE,
            key_needed=True,
            dialect=Dialect.MODEL_IN_PATH,
            version_in_body="vertex-2023-10-16",
        ),
        Kind(
            "bedrock",
            "Amazon Bedrock (Converse)",
            "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html",
            protocols=CHAT,
            chat_path="/model/{model}/converse",
            list_path="/foundation-models",
            auth=Auth.AWS,
            key_needed=True,
            dialect=Dialect.CONVERSE,
            form=OLDER_LIMIT | {Adjustment.NO_STREAM},
            refused=BEDROCK_REFUSES,
            thinking=Thinking.BUDGET,
        ),
        Kind(
            "bedrock_anthropic",
            "Claude on Amazon Bedrock",
            "https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html",
            protocols=MESSAGES,
            chat_path="/model/{model}/invoke",
            list_path="/foundation-models",
            auth=Auth.AWS,
            key_needed=True,
            dialect=Dialect.MODEL_IN_PATH,
            version_in_body="bedrock-2023-05-31",
            form=frozenset({Adjustment.NO_STREAM}),
        ),
    )
}
