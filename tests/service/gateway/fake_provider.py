"""A provider that counts, with a fault for every occasion. Its streams are written by hand, not by the code under test."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route


@dataclass(frozen=True)
class Fault:
    """What to do instead of answering."""

    kind: str
    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    seconds: float = 0.0


@dataclass
class FakeProvider:
    """Faults are used up in order, first those for a prompt, then the general ones; after them all is well."""

    faults: deque[Fault] = field(default_factory=deque)
    faults_for: dict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))
    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    hold: asyncio.Event | None = None  #: answers wait for it
    at_once: int = 0
    most_at_once: int = 0
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def asked(self) -> Counter[str]:
        return Counter(prompt_of(body) for _, _, body in self.requests)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/messages", self._handle, methods=["POST"]),
                Route("/v1/chat/completions", self._handle, methods=["POST"]),
                Route("/v1/responses", self._handle, methods=["POST"]),
            ]
        )

    async def _handle(self, request: Request) -> Response:
        body = await request.json()
        path = request.url.path
        self.requests.append((path, dict(request.headers), body))
        prompt = prompt_of(body)
        fault = None
        if self.faults_for[prompt]:
            fault = self.faults_for[prompt].popleft()
        elif self.faults:
            fault = self.faults.popleft()
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.seconds)
            if self.hold is not None:
                await self.hold.wait()
            if fault is not None:
                return await self._misbehave(fault, path, body)
        finally:
            self.at_once -= 1
        self.answered[prompt] += 1
        if body.get("stream"):
            return StreamingResponse(_pieces(stream_of(path, body)), media_type="text/event-stream", headers=self.headers)
        return JSONResponse(message_of(path, body), headers=self.headers)

    async def _misbehave(self, fault: Fault, path: str, body: dict[str, Any]) -> Response:
        match fault.kind:
            case "status":
                error = {"type": "error", "error": {"type": "some_error", "message": "it did not work"}}
                content = error if fault.body is None else fault.body
                return JSONResponse(content, status_code=fault.status, headers=fault.headers)
            case "raw":
                return Response(fault.body, status_code=fault.status, media_type="application/json")
            case "echo":
                return JSONResponse(_echoing(message_of(path, body), fault.body))
            case "garbage":
                return Response(b"<html>\xff not json", media_type="application/json")
            case "garbage events":
                return Response(b"data: {not json\n\n", media_type="text/event-stream")
            case "cut":
                return StreamingResponse(_cut(list(stream_of(path, body))), media_type="text/event-stream")
            case "short":
                events = list(stream_of(path, body))
                return Response(b"".join(events[: len(events) // 2]), media_type="text/event-stream")
            case "cut after the end":
                events = list(stream_of(path, body))
                return StreamingResponse(_cut(events, keep=len(events) - 1), media_type="text/event-stream")
            case "slow":
                await asyncio.sleep(fault.seconds)
                return JSONResponse(message_of(path, body))
            case "huge body":
                return StreamingResponse(_flood(b"x" * 65536), media_type="application/json")
            case "huge line":
                return StreamingResponse(_flood(b"data: " + b"x" * 65536), media_type="text/event-stream")
            case "huge stream":
                return StreamingResponse(_flood_events(path, body), media_type="text/event-stream")
            case "redirect":
                return RedirectResponse(fault.body, status_code=307)
            case "streamed error":
                return Response(_error_events(path, fault.body), media_type="text/event-stream")
            case "whole":
                self.answered[prompt_of(body)] += 1
                return JSONResponse(message_of(path, body))
        raise AssertionError(fault.kind)


def _echoing(message: dict[str, Any], text: str) -> dict[str, Any]:
    """The answer with another text, and with the same in a field of the server's own."""
    if "choices" in message:
        message["choices"][0]["message"]["content"] = text
    else:
        parts = message["content"] if "content" in message else message["output"][-1]["content"]
        parts[-1 if "output" in message else 2]["text"] = text
    return {**message, "debug": {"headers": [text]}}


def prompt_of(body: dict[str, Any]) -> str:
    if "input" in body:
        return str(body["input"])
    return str(body["messages"][-1]["content"])


def message_of(path: str, body: dict[str, Any]) -> dict[str, Any]:
    prompt, model = prompt_of(body), body["model"]
    text = f"answer to {prompt} ✓\n" * 3
    if path.endswith("messages"):
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [
                {"type": "thinking", "thinking": "hm " * 5, "signature": "sig+/="},
                {"type": "redacted_thinking", "data": "abc"},
                {"type": "text", "text": text, "citations": None},
                {"type": "tool_use", "id": "tu_1", "name": "look", "input": {"q": ["ü", 1, {"deep": None}]}},
            ],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": 10,
                "cache_read_input_tokens": 5,
                "cache_creation_input_tokens": 2,
                "output_tokens": 30,
                "output_tokens_details": {"thinking_tokens": 12},
            },
        }
    if path.endswith("completions"):
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1700000000,
            "model": model,
            "system_fingerprint": "fp_1",
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "content": text,
                        "refusal": None,
                        "reasoning_content": "hm " * 5,
                        "tool_calls": [
                            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q": "ü"}'}}
                        ],
                    },
                    "logprobs": None,
                    "finish_reason": "stop",
                }
            ],
            "usage": {
                "prompt_tokens": 17,
                "completion_tokens": 30,
                "total_tokens": 47,
                "prompt_tokens_details": {"cached_tokens": 5},
                "completion_tokens_details": {"reasoning_tokens": 12},
            },
        }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1700000000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "hm"}],
                "encrypted_content": "e",
            },
            {
                "type": "message",
                "id": "m_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}],
            },
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 17,
            "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 0},
            "output_tokens": 30,
            "output_tokens_details": {"reasoning_tokens": 12},
            "total_tokens": 47,
        },
    }


def stream_of(path: str, body: dict[str, Any]) -> Iterator[bytes]:
    whole = message_of(path, body)
    if path.endswith("messages"):
        yield from _anthropic_stream(whole)
    elif path.endswith("completions"):
        yield from _chat_stream(whole)
    else:
        yield from _responses_stream(whole)


def _event(name: str | None, data: Any) -> bytes:
    return (f"event: {name}\r\n" if name else "").encode() + b"data: " + json.dumps(data).encode() + b"\r\n\r\n"


def _anthropic_stream(whole: dict[str, Any]) -> Iterator[bytes]:
    start = whole | {"content": [], "stop_reason": None, "usage": {"input_tokens": 10, "output_tokens": 1}}
    start["usage"] |= {"cache_read_input_tokens": 5, "cache_creation_input_tokens": 2}
    yield _event("message_start", {"type": "message_start", "message": start})
    yield _event("ping", {"type": "ping"})
    _, redacted, text, tool = whole["content"]
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        (
            {"type": "thinking", "thinking": "", "signature": ""},
            [{"type": "thinking_delta", "thinking": "hm "}] * 5 + [{"type": "signature_delta", "signature": "sig+/="}],
        ),
        (redacted, []),
        ({"type": "text", "text": "", "citations": None}, [{"type": "text_delta", "text": c} for c in text["text"]]),
        (
            tool | {"input": {}},
            [{"type": "input_json_delta", "partial_json": p} for p in ("", '{"q": ["\\u00fc", 1', ', {"deep": null}]}')],
        ),
    ]
    for index, (block, deltas) in enumerate(blocks):
        yield _event("content_block_start", {"type": "content_block_start", "index": index, "content_block": block})
        for delta in deltas:
            yield _event("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})
        yield _event("content_block_stop", {"type": "content_block_stop", "index": index})
    usage = {"output_tokens": 30, "output_tokens_details": {"thinking_tokens": 12}, "input_tokens": None}
    ending = {"stop_reason": "end_turn", "stop_sequence": None}
    yield _event("message_delta", {"type": "message_delta", "delta": ending, "usage": usage})
    yield _event("message_stop", {"type": "message_stop"})


def _chat_stream(whole: dict[str, Any]) -> Iterator[bytes]:
    base = {k: whole[k] for k in ("id", "created", "model", "system_fingerprint")} | {"object": "chat.completion.chunk"}
    message = whole["choices"][0]["message"]

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _event(None, base | {"choices": [choice], "usage": None})

    yield chunk({"role": "assistant", "content": "", "refusal": None})
    for _ in range(5):
        yield chunk({"reasoning_content": "hm "})
    for letter in message["content"]:
        yield chunk({"content": letter})
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": ""}}
    yield chunk({"tool_calls": [call]})
    for part in ('{"q": ', '"ü"}'):
        yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
    yield chunk({}, "stop")
    yield _event(None, base | {"choices": [], "usage": whole["usage"]})
    yield b"data: [DONE]\n\n"


def _responses_stream(whole: dict[str, Any]) -> Iterator[bytes]:
    yield _event("response.created", {"type": "response.created", "sequence_number": 0, "response": whole | {"output": []}})
    for index, item in enumerate(whole["output"]):
        for word in ("added", "done"):
            kind = f"response.output_item.{word}"
            yield _event(kind, {"type": kind, "sequence_number": 1, "output_index": index, "item": item})
    yield _event("response.completed", {"type": "response.completed", "sequence_number": 9, "response": whole})


async def _pieces(events: Iterator[bytes]) -> AsyncIterator[bytes]:
    """In pieces that do not respect the borders of events or letters."""
    whole = b"".join(events)
    for start in range(0, len(whole), 1777):
        yield whole[start : start + 1777]


async def _cut(events: list[bytes], keep: int | None = None) -> AsyncIterator[bytes]:
    for event in events[: len(events) // 2 if keep is None else keep]:
        yield event
    await asyncio.sleep(0.01)
    raise ConnectionResetError("the fake provider cuts the stream")


async def _flood(piece: bytes) -> AsyncIterator[bytes]:
    for _ in range(1600):
        yield piece


async def _flood_events(path: str, body: dict[str, Any]) -> AsyncIterator[bytes]:
    events = list(stream_of(path, body))
    marker = "content_block_delta" if path.endswith("messages") else '"content": "'
    for event in events:
        if marker.encode() in event and b"answer"[:1] in event:
            big = event.replace(b'"text": "a"', b'"text": "' + b"a" * 65536 + b'"')
            big = big.replace(b'"content": "a"', b'"content": "' + b"a" * 65536 + b'"')
            for _ in range(1600):
                yield big
        else:
            yield event


def _error_events(path: str, error: dict[str, Any]) -> bytes:
    if path.endswith("messages"):
        return _event("error", {"type": "error", "error": error})
    if path.endswith("completions"):
        return _event(None, {"error": error})
    return _event("error", {"type": "error", "sequence_number": 0, **error})
