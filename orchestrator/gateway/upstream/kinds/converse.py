"""Chat completions as Amazon Bedrock's Converse has them, and its answers as chat completions. Pure.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html. Texts only: tools and images are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.gateway.protocols.protocol import BadStream, Message, count, part_of, texts_of

_INFERENCE = {
    "max_tokens": "maxTokens",
    "max_completion_tokens": "maxTokens",
    "temperature": "temperature",
    "top_p": "topP",
}
_OURS = frozenset({"model", "messages", "stream", "stream_options", "stop", *_INFERENCE})
_THEIRS = frozenset({"guardrailConfig", "performanceConfig", "serviceTier", "requestMetadata", "outputConfig"})
"""Fields of Converse itself that `extra_body` may have."""
_NOT_TRANSLATED = ("tools", "functions", "tool_choice", "response_format", "audio", "modalities")
_SYSTEM = frozenset({"system", "developer"})
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "model_length",
    "tool_use": "tool_calls",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}


def converse_request(body: Message) -> Message:
    """Raises `ValueError` with a sentence if the request has something that is not translated."""
    if (name := next((name for name in _NOT_TRANSLATED if body.get(name) is not None), None)) is not None:
        raise ValueError(f"{name} is not translated for Bedrock; a proxy such as LiteLLM can")
    system, messages = [], list[Message]()
    for message in body["messages"]:
        texts = list(_texts(message))
        role = message.get("role")
        if role in _SYSTEM:
            system += [{"text": text} for text in texts if text]
        elif role not in ("user", "assistant"):
            raise ValueError(f"a message of the role {str(role)[:40]} is not translated for Bedrock")
        elif messages and messages[-1]["role"] == role:  # roles must alternate
            messages[-1]["content"] += [{"text": text} for text in texts]
        else:
            messages.append({"role": role, "content": [{"text": text} for text in texts]})
    inference = {theirs: body[name] for name, theirs in _INFERENCE.items() if body.get(name) is not None}
    if stop := body.get("stop"):
        inference["stopSequences"] = [stop] if isinstance(stop, str) else stop
    rest = {name: value for name, value in body.items() if name not in _OURS and name not in _THEIRS and value is not None}
    return {
        "messages": messages,
        **({"system": system} if system else {}),
        **({"inferenceConfig": inference} if inference else {}),
        **({"additionalModelRequestFields": rest} if rest else {}),
        **{name: body[name] for name in _THEIRS & body.keys()},
    }


def chat_completion(answer: Message, model: str) -> Message:
    """Raises `BadStream` if it is not an answer of Converse."""
    message = part_of(part_of(answer, "output"), "message")
    blocks = message.get("content")
    if not isinstance(blocks, list):
        raise BadStream("the answer is not one of Bedrock's Converse")
    blocks = [block for block in blocks if isinstance(block, dict)]
    thinking = "".join(texts_of([part_of(part_of(block, "reasoningContent"), "reasoningText") for block in blocks]))
    text = "".join(block["text"] for block in blocks if isinstance(block.get("text"), str))
    said: Message = {"role": "assistant", "content": text, "refusal": None}
    if thinking:
        said["reasoning_content"] = thinking
    finish = _FINISH.get(str(answer.get("stopReason")), "error")
    return {
        "id": "bedrock",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": said, "logprobs": None, "finish_reason": finish}],
        "usage": _usage(part_of(answer, "usage")),
    }


def _usage(usage: Message) -> Message:
    """`inputTokens` does not include what was read from the cache or written to it."""
    cached, written = count(usage.get("cacheReadInputTokens")), count(usage.get("cacheWriteInputTokens"))
    tokens_in, tokens_out = count(usage.get("inputTokens")) + cached + written, count(usage.get("outputTokens"))
    return {
        "prompt_tokens": tokens_in,
        "completion_tokens": tokens_out,
        "total_tokens": tokens_in + tokens_out,
        "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
    }


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    content = message.get("content")
    if isinstance(content, str):
        yield content
        return
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict) or part.get("type", "text") != "text":
            raise ValueError("a part that is not text is not translated for Bedrock")
        yield str(part.get("text") or "")
