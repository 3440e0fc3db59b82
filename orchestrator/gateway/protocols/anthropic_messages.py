"""Anthropic messages: `POST /v1/messages`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from orchestrator.gateway.edge.errors import Code, GatewayError, UpstreamError
from orchestrator.gateway.protocols.protocol import (
    TOKEN_LIMITS,
    Assembler,
    BadStream,
    CallRequest,
    Finish,
    Message,
    PlainReply,
    StreamedError,
    TokenUsage,
    count,
    part_of,
    pieces,
    positive,
    texts_of,
    unless_empty,
)
from orchestrator.gateway.protocols.sse import Event, encode, parsed
from runner.contract import run_spec

_FINISH = {
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.CONTEXT_WINDOW,
    "refusal": Finish.REFUSAL,
    "tool_use": Finish.TOOL_USE,
    "pause_turn": Finish.PAUSE,
}
_STOP_REASON = {
    Finish.STOP: "end_turn",
    Finish.LENGTH: "max_tokens",
    Finish.REFUSAL: "refusal",
    Finish.CONTENT_FILTER: "refusal",
}
_ERROR_TYPE = {
    Code.UNAUTHORIZED: "authentication_error",
    Code.PROVIDER_KEY_REFUSED: "authentication_error",
    Code.FORBIDDEN: "permission_error",
    Code.NOT_FOUND: "not_found_error",
    Code.VALIDATION_ERROR: "invalid_request_error",
    Code.CONFLICT: "invalid_request_error",
    Code.PAYLOAD_TOO_LARGE: "request_too_large",
    Code.BUDGET_EXHAUSTED: "billing_error",
    Code.PRICE_UNKNOWN: "billing_error",
    Code.RATE_LIMITED: "rate_limit_error",
}
_DELTA_FIELDS = ("stop_reason", "stop_sequence", "stop_details", "container")


class AnthropicMessages:
    protocol = run_spec.Protocol.ANTHROPIC
    path = "/v1/messages"
    last_words: tuple[bytes, ...] = (b"message_stop", b'"error"')

    def read(self, body: Message) -> CallRequest:
        messages = body.get("messages")
        if not isinstance(body.get("model"), str) or not isinstance(messages, list):
            raise ValueError("a request needs `model` and `messages`")
        max_tokens = positive(body, *TOKEN_LIMITS)
        if body.get("max_tokens") is None:
            raise ValueError("max_tokens is required")
        text = "\n".join([*texts_of(body.get("system")), *texts_of(messages)])
        return CallRequest(body["model"], body.get("stream") is True, text, max_tokens)

    def outgoing(self, body: Message) -> Message:
        return {**body, "stream": True}

    def assembler(self) -> Assembler:
        return AnthropicAssembler()

    def check(self, message: Message) -> None:
        if isinstance(message.get("error"), dict):
            raise StreamedError(str(message["error"].get("type", "api_error")), message["error"])
        if message.get("type") != "message" or not isinstance(message.get("content"), list):
            raise BadStream("the answer is not an Anthropic message")

    def stream(self, message: Message, body: Message) -> Iterator[bytes]:
        opening = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
        opening.pop("stop_details", None)
        opening["usage"] = {**(message.get("usage") or {}), "output_tokens": 0}
        yield encode({"type": "message_start", "message": opening}, "message_start")
        for index, block in enumerate(message["content"]):
            empty, deltas = _split_block(block)
            yield encode({"type": "content_block_start", "index": index, "content_block": empty}, "content_block_start")
            for delta in deltas:
                yield encode({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")
            yield encode({"type": "content_block_stop", "index": index}, "content_block_stop")
        ending = {name: message[name] for name in _DELTA_FIELDS if name in message}
        yield encode({"type": "message_delta", "delta": ending, "usage": message.get("usage") or {}}, "message_delta")
        yield encode({"type": "message_stop"}, "message_stop")

    def usage(self, message: Message) -> TokenUsage | None:
        usage = message.get("usage")
        if not isinstance(usage, dict):
            return None
        cached, written = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
        return unless_empty(
            TokenUsage(
                input_tokens=count(usage.get("input_tokens")) + cached + written,
                output_tokens=count(usage.get("output_tokens")),
                cached_tokens=cached,
                cache_write_tokens=written,
                reasoning_tokens=count(part_of(usage, "output_tokens_details").get("thinking_tokens")),
            )
        )

    def finish(self, message: Message) -> Finish:
        return _FINISH.get(str(message.get("stop_reason")), Finish.OTHER)

    def compose(self, reply: PlainReply) -> Message:
        content: list[Message] = []
        if reply.thinking:
            content.append({"type": "thinking", "thinking": reply.thinking, "signature": "none"})
        content.append({"type": "text", "text": reply.text, "citations": None})
        usage = reply.usage
        return {
            "id": f"msg_{reply.id}",
            "type": "message",
            "role": "assistant",
            "model": reply.model,
            "content": content,
            "stop_reason": _STOP_REASON.get(reply.finish, "end_turn"),
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage.input_tokens,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": usage.output_tokens,
                "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
            },
        }

    def error_body(self, error: GatewayError) -> Message:
        provider_error = error.body if isinstance(error, UpstreamError) else None
        body: Message = {
            "type": _ERROR_TYPE.get(error.code, "api_error"),
            **(provider_error or {}),
            "message": error.message,
        }
        body["details"] = {"error_code": error.code, "scope": error.scope}
        return {"type": "error", "error": body, "code": error.code}

    def error_event(self, error: GatewayError) -> bytes:
        return encode({**self.error_body(error), "status": error.status}, "error")

    def ping(self) -> bytes:
        return encode({"type": "ping"}, "ping")


def _split_block(block: Message) -> tuple[Message, list[dict[str, Any]]]:
    """Split a content block into its empty start and the deltas that fill it; unknown kinds start complete."""
    match block.get("type"):
        case "text":
            citations = block.get("citations") or []
            empty = {**block, "text": ""} | ({"citations": []} if citations else {})
            deltas: list[dict[str, Any]] = [{"type": "text_delta", "text": piece} for piece in pieces(block.get("text"))]
            return empty, deltas + [{"type": "citations_delta", "citation": citation} for citation in citations]
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block.get("thinking"))]
            deltas.append({"type": "signature_delta", "signature": block.get("signature") or ""})
            return {**block, "thinking": "", "signature": ""}, deltas
        case "tool_use" | "server_tool_use":
            written = json.dumps(block.get("input", {}), ensure_ascii=False)
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(written)]
        case _:
            return block, []


_GROWS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}

_PARTS = ("content_block_start", "content_block_delta", "content_block_stop", "message_delta")


class AnthropicAssembler:
    def __init__(self) -> None:
        self.size = 0
        self._message: Message | None = None
        self._blocks: dict[int, Message] = {}
        self._growing: dict[tuple[int, str], list[str]] = {}
        self._stopped = False

    @property
    def complete(self) -> bool:
        return self._stopped

    @property
    def over(self) -> bool:
        return self._stopped

    def feed(self, event: Event) -> None:
        if event.name == "ping":
            return
        self.size += 0 if event.name == "content_block_delta" else len(event.data)
        try:
            data = parsed(event.data)
            kind = data["type"]
            if kind == "error":
                raise StreamedError(str(data["error"].get("type", "api_error")), data["error"])
            self._take(kind, data)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BadStream("an event that cannot be read", event.data) from error

    def message(self) -> Message:
        if self._message is None:
            raise BadStream("the stream has no message_start")
        for (index, field), parts in self._growing.items():
            text, block = "".join(parts), self._blocks[index]
            if field != "partial_json":
                block[field] = block.get(field, "") + text
            elif text:
                try:
                    block["input"] = json.loads(text)
                except (ValueError, RecursionError):
                    block["input"] = {"INVALID_JSON": text}
        self._growing.clear()
        return {**self._message, "content": [self._blocks[index] for index in sorted(self._blocks)]}

    def _take(self, kind: str, data: Message) -> None:
        if kind == "message_start":
            self._message = {**data["message"], "content": []}
            self._message["usage"] = dict(self._message.get("usage") or {})
        elif kind == "message_stop":
            self._stopped = True
        elif self._message is None:
            if kind not in _PARTS:
                return  # a ping, or an event type unknown here
            raise BadStream(f"{kind} came before message_start")
        elif kind == "content_block_start":
            self._blocks[data["index"]] = dict(data["content_block"])
        elif kind == "content_block_delta":
            self._delta(data["index"], data["delta"])
        elif kind == "message_delta":
            self._message.update(data.get("delta") or {})
            self._message["usage"].update({k: v for k, v in (data.get("usage") or {}).items() if v is not None})

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        block, kind = self._blocks[index], delta["type"]
        if kind in _GROWS:
            text = delta[_GROWS[kind]]
            self._growing.setdefault((index, _GROWS[kind]), []).append(text)
            self.size += len(text)
        elif kind == "signature_delta":
            block["signature"] = delta["signature"]
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta["citation"]]
            self.size += len(json.dumps(delta))
