"""OpenAI responses: `POST /v1/responses`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.gateway.edge.errors import GatewayError
from orchestrator.gateway.protocols.openai_chat import error_body, stream_error, token_usage
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
    pieces,
    positive,
    reported_error,
    texts_of,
)
from orchestrator.gateway.protocols.sse import COMMENT, Event, encode, parsed
from runner.contract import run_spec

_INCOMPLETE = {"max_output_tokens": Finish.LENGTH, "content_filter": Finish.CONTENT_FILTER}
_ENDINGS = ("response.completed", "response.incomplete", "response.failed")


class OpenAIResponses:
    protocol = run_spec.Protocol.OPENAI_RESPONSES
    path = "/v1/responses"
    last_words: tuple[bytes, ...] = (*(ending.encode() for ending in _ENDINGS), b'"error"')

    def read(self, body: Message) -> CallRequest:
        if not isinstance(body.get("model"), str) or not isinstance(body.get("input"), str | list):
            raise ValueError("a request needs `model` and `input`")
        if body.get("background"):
            raise ValueError("the gateway does not support background responses; send the request without `background`")
        if body.get("previous_response_id") or body.get("conversation"):
            raise ValueError(
                "a call must contain its whole conversation in `input`: stored conversations cannot be replayed"
            )
        text = "\n".join([*texts_of(body.get("instructions")), *texts_of(body["input"])])
        return CallRequest(body["model"], body.get("stream") is True, text, positive(body, *TOKEN_LIMITS))

    def outgoing(self, body: Message) -> Message:
        return {**body, "stream": True}

    def assembler(self) -> Assembler:
        return ResponsesAssembler()

    def check(self, message: Message) -> None:
        if (error := reported_error(message)) is not None:
            raise error
        if message.get("status") in ("failed", "cancelled"):
            raise StreamedError("server_error", {"message": f"the response was {message['status']}, and no reason is given"})
        if message.get("object") != "response" or not isinstance(message.get("output"), list):
            raise BadStream("the answer is not a response")

    def stream(self, message: Message, body: Message) -> Iterator[bytes]:
        for number, event in enumerate(response_events(message)):
            yield encode({**event, "sequence_number": number}, event["type"])

    def usage(self, message: Message) -> TokenUsage | None:
        return token_usage(message, "input_tokens", "output_tokens")

    def finish(self, message: Message) -> Finish:
        if message.get("status") == "incomplete":
            return _INCOMPLETE.get(str((message.get("incomplete_details") or {}).get("reason")), Finish.OTHER)
        items = [item for item in message["output"] if isinstance(item, dict)]
        parts = [part for item in items if item.get("type") == "message" for part in item.get("content") or []]
        if any(part.get("type") == "refusal" for part in parts):
            return Finish.REFUSAL
        if any(item.get("type") == "function_call" for item in items):
            return Finish.TOOL_USE
        return Finish.STOP if message.get("status") == "completed" else Finish.OTHER

    def compose(self, reply: PlainReply) -> Message:
        whole = reply.finish not in (Finish.LENGTH, Finish.CONTENT_FILTER)
        output: list[Message] = []
        if reply.thinking:
            summary = [{"type": "summary_text", "text": reply.thinking}]
            output.append({"type": "reasoning", "id": f"rs_{reply.id}", "summary": summary})
        part: Message = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        if reply.finish is Finish.REFUSAL:
            part = {"type": "refusal", "refusal": reply.text}
        status = "completed" if whole else "incomplete"
        output.append({"type": "message", "id": f"msg_{reply.id}", "role": "assistant", "status": status, "content": [part]})
        cause = "max_output_tokens" if reply.finish is Finish.LENGTH else "content_filter"
        usage = reply.usage
        return {
            "id": f"resp_{reply.id}",
            "object": "response",
            "created_at": reply.created,
            "status": status,
            "error": None,
            "incomplete_details": None if whole else {"reason": cause},
            "instructions": None,
            "metadata": {},
            "model": reply.model,
            "output": output,
            "parallel_tool_calls": True,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": {
                "input_tokens": usage.input_tokens,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": usage.output_tokens,
                "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
                "total_tokens": usage.input_tokens + usage.output_tokens,
            },
        }

    def error_body(self, error: GatewayError) -> Message:
        return error_body(error)

    def error_event(self, error: GatewayError) -> bytes:
        inner = stream_error(error)["error"]
        return encode({**inner, "type": "error", "sequence_number": 0, "error": inner}, "error")

    def ping(self) -> bytes:
        return COMMENT


class ResponsesAssembler:
    """The last event carries the whole response; finished items are kept for servers that leave them out of it."""

    def __init__(self) -> None:
        self.size = 0
        self._response: Message | None = None
        self._items: dict[int, Any] = {}

    @property
    def complete(self) -> bool:
        return self._response is not None

    @property
    def over(self) -> bool:
        return self._response is not None

    def feed(self, event: Event) -> None:
        if event.data.startswith("[DONE]"):
            return
        try:
            data = parsed(event.data)
            kind = data.get("type") or event.name
            if kind == "error":
                error_event = reported_error(data)
                raise error_event or StreamedError(str(data.get("code") or "server_error"), data)
            if kind == "response.output_item.done":
                self._items[data.get("output_index", len(self._items))] = data["item"]  # llama-server numbers none
                self.size += len(event.data)
            elif kind in _ENDINGS:
                self._response = dict(data["response"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BadStream("an event that cannot be read", event.data) from error

    def message(self) -> Message:
        if self._response is None:
            raise BadStream("the stream has no last event")
        if not self._response.get("output"):
            self._response["output"] = [self._items[index] for index in sorted(self._items)]
        return self._response


EventBody = dict[str, Any]


def response_events(response: Message) -> Iterator[EventBody]:
    """Every event of the stream, in order, without sequence numbers."""
    opening = {**response, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": opening}
    yield {"type": "response.in_progress", "response": opening}
    for index, item in enumerate(response["output"]):
        yield from _item(index, item)
    yield {"type": f"response.{response.get('status', 'completed')}", "response": response}


def _item(index: int, item: Message) -> Iterator[EventBody]:
    where = {"item_id": item.get("id", f"item_{index}"), "output_index": index}
    added, inner = {**item}, iter(())  # type: tuple[Message, Iterator[EventBody]]
    if item.get("type") == "message":
        added |= {"content": [], "status": "in_progress"}
        inner = _message(where, item)
    elif item.get("type") == "reasoning":
        added["summary"] = []
        inner = _reasoning(where, item)
    elif item.get("type") == "function_call":
        added |= {"arguments": "", "status": "in_progress"}
        inner = _arguments(where, item)
    yield {"type": "response.output_item.added", "output_index": index, "item": added}
    yield from inner
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _message(where: EventBody, item: Message) -> Iterator[EventBody]:
    for number, part in enumerate(item.get("content") or []):
        position = {**where, "content_index": number}
        kind, field = ("refusal", "refusal") if part.get("type") == "refusal" else ("output_text", "text")
        extra: EventBody = {} if kind == "refusal" else {"logprobs": []}
        empty = {**part, field: ""} | ({"annotations": []} if kind == "output_text" else {})
        yield {"type": "response.content_part.added", **position, "part": empty}
        for piece in pieces(part.get(field)):
            yield {"type": f"response.{kind}.delta", **position, "delta": piece, **extra}
        yield {"type": f"response.{kind}.done", **position, field: part.get(field) or "", **extra}
        yield {"type": "response.content_part.done", **position, "part": part}


def _reasoning(where: EventBody, item: Message) -> Iterator[EventBody]:
    for number, part in enumerate(item.get("summary") or []):
        position = {**where, "summary_index": number}
        yield {"type": "response.reasoning_summary_part.added", **position, "part": {**part, "text": ""}}
        for piece in pieces(part.get("text")):
            yield {"type": "response.reasoning_summary_text.delta", **position, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **position, "text": part.get("text", "")}
        yield {"type": "response.reasoning_summary_part.done", **position, "part": part}


def _arguments(where: EventBody, item: Message) -> Iterator[EventBody]:
    for piece in pieces(item.get("arguments")):
        yield {"type": "response.function_call_arguments.delta", **where, "delta": piece}
    yield {
        "type": "response.function_call_arguments.done",
        **where,
        "name": item.get("name"),
        "arguments": item.get("arguments", ""),
    }
