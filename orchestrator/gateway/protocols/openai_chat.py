"""OpenAI chat completions: `POST /v1/chat/completions`, as spoken by OpenAI and by everything that says it is compatible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.gateway.edge.errors import GatewayError
from orchestrator.gateway.protocols.openai_chat_assembler import ChatAssembler, choice_error
from orchestrator.gateway.protocols.openai_errors import error_body, told_in_stream
from orchestrator.gateway.protocols.protocol import (
    TOKEN_LIMITS,
    Asked,
    Assembler,
    BadStream,
    Message,
    PlainReply,
    count,
    part_of,
    pieces,
    positive,
    said,
    texts_of,
    told_error,
)
from orchestrator.gateway.protocols.sse import COMMENT, encode
from orchestrator.gateway.protocols.usage import Finish, TokenUsage
from runner import contract

_FINISH = {
    "stop": Finish.STOP,
    "length": Finish.LENGTH,
    "content_filter": Finish.CONTENT_FILTER,
    "tool_calls": Finish.TOOL_USE,
    "function_call": Finish.TOOL_USE,
    "refusal": Finish.REFUSAL,
    "max_tokens": Finish.LENGTH,
    "model_length": Finish.CONTEXT_WINDOW,
}
_FINISH_REASON = {Finish.LENGTH: "length", Finish.CONTENT_FILTER: "content_filter", Finish.REFUSAL: "stop"}
_CHUNK_FIELDS = ("id", "created", "model", "service_tier", "system_fingerprint")
_GROWING = ("reasoning_content", "reasoning", "content", "refusal")


class OpenAIChat:
    protocol = contract.Protocol.OPENAI_CHAT
    path = "/v1/chat/completions"
    last_words: tuple[bytes, ...] = (b"[DONE]", b'"error"')

    def read(self, body: Message) -> Asked:
        messages = body.get("messages")
        if not isinstance(body.get("model"), str) or not isinstance(messages, list):
            raise ValueError("a request needs `model` and `messages`")
        limit = positive(body, *TOKEN_LIMITS)
        return Asked(
            body["model"], body.get("stream") is True, "\n".join(texts_of(messages)), limit, positive(body, "n") or 1
        )

    def outgoing(self, body: Message) -> Message:
        options = body.get("stream_options")
        return {
            **body,
            "stream": True,
            "stream_options": {**(options if isinstance(options, dict) else {}), "include_usage": True},
        }

    def assembler(self) -> Assembler:
        return ChatAssembler()

    def check(self, message: Message) -> None:
        if (error := told_error(message)) is not None:
            raise error
        choices = message.get("choices")
        if not isinstance(choices, list) or not choices:
            raise BadStream("the answer is not a chat completion")
        if not all(isinstance(choice, dict) and isinstance(choice.get("message"), dict) for choice in choices):
            raise BadStream("the answer has a choice without a message")
        if (error := choice_error(choices[0])) is not None:
            raise error

    def stream(self, message: Message, body: Message) -> Iterator[bytes]:
        options = body.get("stream_options")
        with_usage = isinstance(options, dict) and options.get("include_usage") is True
        base: Message = {"object": "chat.completion.chunk"} | {k: message[k] for k in _CHUNK_FIELDS if k in message}
        if with_usage:
            base["usage"] = None
        for choice in message["choices"]:
            index = choice.get("index", 0)
            for delta in _deltas(choice["message"]):
                yield encode(
                    {**base, "choices": [{"index": index, "delta": delta, "logprobs": None, "finish_reason": None}]}
                )
            last = {"index": index, "delta": {}, "logprobs": choice.get("logprobs")}
            yield encode({**base, "choices": [{**last, "finish_reason": choice.get("finish_reason")}]})
        if with_usage:
            yield encode({**base, "choices": [], "usage": message.get("usage")})
        yield encode("[DONE]")

    def usage(self, message: Message) -> TokenUsage | None:
        usage = message.get("usage")
        if not isinstance(usage, dict):
            return None
        prompt, completion = part_of(usage, "prompt_tokens_details"), part_of(usage, "completion_tokens_details")
        asked, answered = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
        return said(
            TokenUsage(
                input_tokens=asked,
                # Some leave reasoning out of this figure, and have it in the total.
                output_tokens=max(answered, count(usage.get("total_tokens")) - asked),
                cached_tokens=count(prompt.get("cached_tokens")),
                cache_write_tokens=count(prompt.get("cache_write_tokens")),
                reasoning_tokens=count(completion.get("reasoning_tokens")),
            )
        )

    def finish(self, message: Message) -> Finish:
        choice = message["choices"][0]
        if choice["message"].get("refusal"):
            return Finish.REFUSAL
        return _FINISH.get(str(choice.get("finish_reason")), Finish.OTHER)

    def compose(self, reply: PlainReply) -> Message:
        usage = reply.usage
        answer: Message = {"role": "assistant", "content": reply.text, "refusal": None}
        if reply.finish is Finish.REFUSAL:
            answer |= {"content": None, "refusal": reply.text}
        if reply.thinking:
            answer["reasoning_content"] = reply.thinking
        reason = _FINISH_REASON.get(reply.finish, "stop")
        return {
            "id": f"chatcmpl-{reply.id}",
            "object": "chat.completion",
            "created": reply.created,
            "model": reply.model,
            "choices": [{"index": 0, "message": answer, "logprobs": None, "finish_reason": reason}],
            "usage": {
                "prompt_tokens": usage.input_tokens,
                "completion_tokens": usage.output_tokens,
                "total_tokens": usage.input_tokens + usage.output_tokens,
                "prompt_tokens_details": {"cached_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            },
        }

    def error_body(self, error: GatewayError) -> Message:
        return error_body(error)

    def error_event(self, error: GatewayError) -> bytes:
        return encode(told_in_stream(error))

    def ping(self) -> bytes:
        return COMMENT


def _deltas(message: Message) -> Iterator[dict[str, Any]]:
    """A message as the deltas that a stream brings: role first, then growing texts, then tool calls, then the rest whole."""
    rest = {k: v for k, v in message.items() if k not in ("role", "tool_calls", *_GROWING) and v is not None}
    content = "" if isinstance(message.get("content"), str) else None
    yield {"role": message.get("role", "assistant"), "content": content, "refusal": None} | rest
    for field in _GROWING:
        if isinstance(message.get(field), str):
            for piece in pieces(message[field]):
                yield {field: piece}
    for index, call in enumerate(message.get("tool_calls") or []):
        yield {"tool_calls": [{**call, "index": index}]}
