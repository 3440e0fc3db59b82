"""A provider with both batch interfaces, in the formats that OpenAI and Anthropic document, on a real socket in a thread.

    OpenAI     https://platform.openai.com/docs/api-reference/batch (files with purpose=batch, /v1/batches)
    Anthropic  https://docs.anthropic.com/en/api/creating-message-batches (/v1/messages/batches, results as JSON lines)

It counts what it would bill: every request of a batch that it answers, and every ordinary call. A test decides when batches
end (`finish`), what becomes of single requests (`fates`), and what happens at a request (`at`, by method and path).
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.faults.service import free_ports

DAY_S = 24 * 3600
KEY = "sk-batch-canary-0123456789"
CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class LostAnswer(Exception):
    """The provider acts on the request, and the connection breaks before it answers."""


class BatchProvider:
    def __init__(self) -> None:
        self.url = ""
        self.answer: Callable[[str], str] = lambda question: "42"
        self.fates: Callable[[str], str] = lambda question: "answered"
        self.at: dict[tuple[str, str], Callable[[], None]] = {}
        self.held = False
        self.pause_s = 0.0
        self.listed = True
        self.billed: Counter[str] = Counter()
        self.called: Counter[str] = Counter()
        self.requests: list[tuple[str, str]] = []
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.entries: dict[str, list[dict[str, Any]]] = {}
        self.sizes: list[int] = []
        self._number = 0

    def finish(self) -> None:
        """End every batch that is at work."""
        for batch_id, batch in self.batches.items():
            if _working(batch):
                self._end(batch_id)

    @property
    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/files", self._upload, methods=["POST"]),
                Route("/v1/files/{id}/content", self._content),
                Route("/v1/batches", self._openai_batches, methods=["GET", "POST"]),
                Route("/v1/batches/{id}", self._openai_batch),
                Route("/v1/batches/{id}/cancel", self._cancel, methods=["POST"]),
                Route("/v1/messages/batches", self._anthropic_batches, methods=["GET", "POST"]),
                Route("/v1/messages/batches/{id}", self._anthropic_batch),
                Route("/v1/messages/batches/{id}/cancel", self._cancel, methods=["POST"]),
                Route("/v1/messages/batches/{id}/results", self._results),
                Route("/v1/chat/completions", self._call, methods=["POST"]),
                Route("/v1/messages", self._call, methods=["POST"]),
                Route("/v1/responses", self._call, methods=["POST"]),
            ]
        )

    def _note(self, request: Request, path: str) -> None:
        """Record a request, and let the test interfere."""
        key = request.headers.get("authorization", "").removeprefix("Bearer ") or request.headers.get("x-api-key")
        assert key == KEY, f"the key of {path} is {key}"
        self.requests.append((request.method, path))
        if (act := self.at.pop((request.method, path), None)) is not None:
            act()

    def _new(self, kind: str) -> str:
        self._number += 1
        return f"{kind}_{self._number:06d}"

    # OpenAI

    async def _upload(self, request: Request) -> Response:
        form = _form(request.headers["content-type"], await request.body())
        assert form["purpose"] == b"batch"
        file_id, content = self._new("file"), form["file"]
        self.files[file_id] = content
        self.sizes.append(len(content))
        self._note(request, "/v1/files")
        return JSONResponse({"id": file_id, "object": "file", "bytes": len(content), "purpose": "batch"})

    async def _openai_batches(self, request: Request) -> Response:
        if request.method == "GET":
            self._note(request, "/v1/batches")
            newest = [batch for batch in reversed(self.batches.values()) if batch.get("object") == "batch"]
            return JSONResponse(_page(newest if self.listed else [], request.query_params.get("after")))
        body = await request.json()
        lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        assert body["completion_window"] == "24h"
        assert body["endpoint"] in ("/v1/chat/completions", "/v1/responses")
        problem = _bad_lines(lines, body["endpoint"])
        batch_id, now = self._new("batch"), int(time.time())
        self.batches[batch_id] = {
            "id": batch_id,
            "object": "batch",
            "endpoint": body["endpoint"],
            "errors": {"object": "list", "data": [{"code": "invalid", "message": problem}]} if problem else None,
            "input_file_id": body["input_file_id"],
            "completion_window": "24h",
            "status": "failed" if problem else "in_progress",
            "output_file_id": None,
            "error_file_id": None,
            "created_at": now,
            "expires_at": now + DAY_S,
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
            "metadata": body.get("metadata"),
        }
        self.entries[batch_id] = [{"custom_id": line["custom_id"], "params": line["body"]} for line in lines]
        return await self._made(request, "/v1/batches", batch_id)

    async def _made(self, request: Request, path: str, batch_id: str) -> Response:
        try:
            self._note(request, path)
        except LostAnswer:
            return Response(status_code=502, content="gone")
        if not self.held and _working(self.batches[batch_id]):
            self._end(batch_id)
        return JSONResponse(self.batches[batch_id])

    async def _openai_batch(self, request: Request) -> Response:
        self._note(request, "/v1/batches/{id}")
        return JSONResponse(self.batches[request.path_params["id"]])

    async def _content(self, request: Request) -> Response:
        self._note(request, "/v1/files/{id}/content")
        return StreamingResponse(self._slowly(self.files[request.path_params["id"]]))

    async def _slowly(self, content: bytes) -> AsyncIterator[bytes]:
        for number, line in enumerate(content.splitlines(keepends=True)):
            yield line
            if (act := self.at.pop(("LINE", str(number)), None)) is not None:
                await asyncio.sleep(0.5)
                act()
            if self.pause_s:
                await asyncio.sleep(self.pause_s)

    # Anthropic

    async def _anthropic_batches(self, request: Request) -> Response:
        if request.method == "GET":
            self._note(request, "/v1/messages/batches")
            newest = [batch for batch in reversed(self.batches.values()) if batch.get("type") == "message_batch"]
            return JSONResponse(_page(newest if self.listed else [], request.query_params.get("after_id")))
        assert request.headers["anthropic-version"]
        entries = (await request.json())["requests"]
        self.sizes.append(int(request.headers["content-length"]))
        names = [entry["custom_id"] for entry in entries]
        if len(set(names)) != len(names) or not all(CUSTOM_ID.fullmatch(name) for name in names):
            return JSONResponse({"type": "error", "error": {"type": "invalid_request_error"}}, status_code=400)
        assert not any("stream" in entry["params"] for entry in entries)
        batch_id = self._new("msgbatch")
        self.batches[batch_id] = {
            "id": batch_id,
            "type": "message_batch",
            "processing_status": "in_progress",
            "request_counts": {"processing": len(entries), "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0},
            "created_at": datetime.now(UTC).isoformat(),
            "expires_at": datetime.fromtimestamp(time.time() + DAY_S, UTC).isoformat(),
            "ended_at": None,
            "results_url": None,
        }
        self.entries[batch_id] = entries
        return await self._made(request, "/v1/messages/batches", batch_id)

    async def _anthropic_batch(self, request: Request) -> Response:
        self._note(request, "/v1/messages/batches/{id}")
        return JSONResponse(self.batches[request.path_params["id"]])

    async def _results(self, request: Request) -> Response:
        self._note(request, "/v1/messages/batches/{id}/results")
        return StreamingResponse(self._slowly(self.files[request.path_params["id"]]))

    async def _cancel(self, request: Request) -> Response:
        batch_id = request.path_params["id"]
        self._note(request, "cancel")
        if _working(self.batches[batch_id]):
            self._end(batch_id, cancelled=True)
        return JSONResponse(self.batches[batch_id])

    # what becomes of a batch

    def _end(self, batch_id: str, *, cancelled: bool = False) -> None:
        batch = self.batches[batch_id]
        fates = {entry["custom_id"]: self.fates(_question(entry["params"])) for entry in self.entries[batch_id]}
        if cancelled:
            fates = {name: fate if fate == "early" else "cancelled" for name, fate in fates.items()}
        lines: list[tuple[str, bytes]] = []
        for entry in self.entries[batch_id]:
            fate, question = fates[entry["custom_id"]], _question(entry["params"])
            if fate in ("answered", "early"):
                self.billed[question] += 1
            form = self._openai_line if "object" in batch else self._anthropic_line
            lines.append((fate, form(batch, entry, fate, question)))
        count = Counter("answered" if fate == "early" else fate for fate in fates.values())
        if "object" in batch:
            good = b"".join(line for fate, line in lines if fate in ("answered", "early"))
            bad = b"".join(line for fate, line in reversed(lines) if fate not in ("answered", "early", "missing"))
            for name, content in (("output_file_id", good), ("error_file_id", bad)):
                if content:
                    batch[name] = self._new("file")
                    self.files[batch[name]] = content
            status = "cancelled" if cancelled else "expired" if count["expired"] else "completed"
            failed = len(fates) - count["answered"]
            batch |= {
                "status": status,
                "request_counts": {"total": len(fates), "completed": count["answered"], "failed": failed},
            }
            return
        self.files[batch_id] = b"".join(line for fate, line in reversed(lines) if fate != "missing")
        counts = {"processing": 0, "succeeded": count["answered"], "errored": count["refused"] + count["broken"]}
        batch["request_counts"] = counts | {"canceled": count["cancelled"], "expired": count["expired"]}
        batch |= {"processing_status": "ended", "ended_at": "2026-01-01T00:00:00Z", "results_url": "http://elsewhere.test/x"}

    def _openai_line(self, batch: dict[str, Any], entry: dict[str, Any], fate: str, question: str) -> bytes:
        response: dict[str, Any] | None = None
        error: dict[str, str] | None = None
        if fate in ("answered", "early"):
            chat = batch["endpoint"] == "/v1/chat/completions"
            body = (
                _chat(entry["params"], self.answer(question)) if chat else _responses(entry["params"], self.answer(question))
            )
            response = {"status_code": 200, "request_id": "r", "body": body}
        elif fate in ("refused", "broken"):
            body = {"error": {"message": f"cannot do {question}", "type": "invalid_request_error", "code": None}}
            response = {"status_code": 400 if fate == "refused" else 500, "request_id": "r", "body": body}
        else:
            error = {"code": f"batch_{fate}", "message": f"This request was {fate}."}
        line = {"id": "batch_req_1", "custom_id": entry["custom_id"], "response": response, "error": error}
        return json.dumps(line).encode() + b"\n"

    def _anthropic_line(self, batch: dict[str, Any], entry: dict[str, Any], fate: str, question: str) -> bytes:
        result: dict[str, Any] = {"type": {"cancelled": "canceled"}.get(fate, fate)}
        if fate in ("answered", "early"):
            result = {"type": "succeeded", "message": _message(entry["params"], self.answer(question))}
        elif fate in ("refused", "broken"):
            kind = "invalid_request_error" if fate == "refused" else "api_error"
            result = {"type": "errored", "error": {"type": "error", "error": {"type": kind, "message": f"no {question}"}}}
        return json.dumps({"custom_id": entry["custom_id"], "result": result}).encode() + b"\n"

    # ordinary calls

    async def _call(self, request: Request) -> Response:
        body = await request.json()
        self._note(request, request.url.path)
        question = _question(body)
        self.called[question] += 1
        shapes = {"/v1/messages": _message, "/v1/chat/completions": _chat, "/v1/responses": _responses}
        return JSONResponse(shapes[request.url.path](body, self.answer(question)))


def _form(content_type: str, body: bytes) -> dict[str, bytes]:
    """The fields of a form, as browsers send it."""
    boundary = content_type.partition("boundary=")[2].encode()
    fields = {}
    for part in body.split(b"--" + boundary)[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        name = re.search(rb'name="([^"]+)"', head)
        assert name is not None
        fields[name[1].decode()] = content.removesuffix(b"\r\n")
    return fields


def _working(batch: dict[str, Any]) -> bool:
    return "in_progress" in (batch.get("status"), batch.get("processing_status"))


def _bad_lines(lines: list[dict[str, Any]], endpoint: str) -> str:
    if len({line["custom_id"] for line in lines}) != len(lines):
        return "custom_id must be unique"
    if any(line["method"] != "POST" or line["url"] != endpoint for line in lines):
        return "the url of a line is not the endpoint"
    if len({line["body"]["model"] for line in lines}) > 1:
        return "a batch may have one model"
    return "stream is not supported" if any("stream" in line["body"] for line in lines) else ""


def _page(batches: list[dict[str, Any]], after: str | None) -> dict[str, Any]:
    ids = [batch["id"] for batch in batches]
    first = ids.index(after) + 1 if after in ids else 0
    shown = batches[first : first + 2]
    last = shown[-1]["id"] if shown else None
    return {"object": "list", "data": shown, "has_more": len(batches) > first + 2, "last_id": last}


def _question(body: dict[str, Any]) -> str:
    if isinstance(body.get("input"), str):
        return str(body["input"])
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else str(content[0]["text"])


def _chat(body: dict[str, Any], text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }


def _responses(body: dict[str, Any], text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": body["model"],
        "output": [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 100,
            "output_tokens": 20,
            "total_tokens": 120,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _message(body: dict[str, Any], text: str) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 20},
    }


@contextmanager
def batch_provider() -> Iterator[BatchProvider]:
    """A provider that listens for as long as the block lasts."""
    provider = BatchProvider()
    (port,) = free_ports(1)
    config = uvicorn.Config(provider.app, port=port, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    provider.url = f"http://127.0.0.1:{port}"
    try:
        yield provider
    finally:
        server.should_exit = server.force_exit = True
        with suppress(RuntimeError):
            thread.join(30)
