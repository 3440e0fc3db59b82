"""A small real HTTP server that plays the orchestrator and the gateway, with a knob for each failure."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from tests.uids import own_uid_base

RUN_ID = "run-1"
TOKEN = "boot-token"
RUN_TOKEN = "run-token"

StartRunner = Callable[[str], "subprocess.Popen[str]"]


def problem(problem_id: str, statement: str = "Print twice the number.", **more: Any) -> dict[str, Any]:
    record = {
        "question_id": problem_id,
        "question_content": f"{statement} [{problem_id}]",
        "starter_code": "",
        "public_test_cases": [{"input": "2\n", "output": "4\n", "testtype": "stdin"}],
        "private_test_cases": [{"input": "21\n", "output": "42\n", "testtype": "stdin"}],
        "metadata": {},
        **more,
    }
    return {"benchmark": "sample", "problem_id": problem_id, "record": record}


RIGHT = "Twice:\n```python\nprint(2 * int(input()))\n```\n"


class FakeOrchestrator:
    """Stores what runners send. `before_event` and `after_event` may answer instead; `answer` plays the model."""

    def __init__(self) -> None:
        self.problems = [problem("p1")]
        self.spec: dict[str, Any] = {
            "run_id": RUN_ID,
            "attempt": 1,
            "run_token": RUN_TOKEN,
            "model": {"slug": "m", "provider": "demo", "name": "demo-1", "protocol": "openai_chat"},
            "sandbox_uid_base": own_uid_base(),
            "heartbeat_s": 5.0,
            "batch_s": 0.02,
        }
        self.claims: list[dict[str, Any]] = []
        self.claim_answers: list[Response] = []
        self.events: dict[int, dict[str, Any]] = {}
        self.posts: list[list[int]] = []
        self.post_times: list[float] = []
        self.accepted: list[list[str]] = []
        """The types of the events in each post that was not refused."""
        self.post_bytes: list[int] = []
        self.calls: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        self.desired = "run"
        self.max_body = 1 << 30
        self.before_event: Callable[[int], Response | None] = lambda n: None
        self.after_event: Callable[[int], Response | None] = lambda n: None
        self.before_problems: Callable[[int], Response | None] = lambda n: None
        self.problem_reads = 0
        self.answer: Callable[[str, dict[str, Any]], Response | str] = lambda key, body: RIGHT
        self.url = ""

    def full_spec(self) -> dict[str, Any]:
        ids = [one["problem_id"] for one in self.problems]
        benchmark = {"name": "sample", "adapter": "livecodebench", "pack_digest": "d", "problem_ids": ids}
        return {"benchmarks": [benchmark], "gateway_url": f"{self.url}/gateway", **self.spec}

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for _, event in sorted(self.events.items()) if event["type"] == kind]

    @property
    def items(self) -> dict[str, dict[str, Any]]:
        return {event["item"]["problem_id"]: event["item"] for event in self.of("progress")}

    @property
    def boot_line(self) -> str:
        return json.dumps({"orchestrator_url": self.url, "token": TOKEN, "instance_type": "basic", "engine": "process"})

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.post("/runner/claim")
        async def claim(request: Request) -> Response:
            self.claims.append(await request.json())
            if self.claim_answers:
                return self.claim_answers.pop(0)
            return JSONResponse({"action": "run", "spec": self.full_spec()})

        @app.post("/runner/runs/{run_id}/events")
        async def events(request: Request) -> Response:
            raw = await request.body()
            n = len(self.posts)
            batch = json.loads(raw)
            self.posts.append([event["seq"] for event in batch["events"]])
            self.post_times.append(time.monotonic())
            self.post_bytes.append(len(raw))
            if len(raw) > self.max_body:
                return JSONResponse({"detail": "too large"}, 413)
            if (early := self.before_event(n)) is not None:
                return early
            self.accepted.append([event["type"] for event in batch["events"]])
            for event in batch["events"]:
                if event["seq"] == len(self.events) + 1:
                    self.events[event["seq"]] = event
            if (late := self.after_event(n)) is not None:
                return late
            return JSONResponse({"ack_seq": len(self.events), "desired": self.desired})

        @app.get("/runner/runs/{run_id}/problems")
        async def problems() -> Response:
            n = self.problem_reads
            self.problem_reads += 1
            if (early := self.before_problems(n)) is not None:
                return early
            lines = "".join(json.dumps(one) + "\n" for one in self.problems)
            return Response(gzip.compress(lines.encode()), headers={"Content-Encoding": "gzip"})

        @app.post("/gateway/demo/v1/{path:path}")
        async def gateway(path: str, request: Request) -> Response:
            key, body = request.headers["x-benchyard-call"], await request.json()
            self.calls.append((key, body, dict(request.headers)))
            given = await asyncio.to_thread(self.answer, key, body)
            if not isinstance(given, str):
                return given
            return message_stream(given) if path == "messages" else chat_stream(given)

        return app


def sse(events: list[Any], *, cut: bool = False, headers: dict[str, str] | None = None) -> Response:
    """A stream of (name, data) or data; `cut` breaks the connection after the last one."""

    async def body() -> Any:
        for event in events:
            name, data = event if isinstance(event, tuple) else (None, event)
            text = data if isinstance(data, str) else json.dumps(data)
            yield (f"event: {name}\n" if name else "") + f"data: {text}\n\n"
        if cut:
            raise ConnectionResetError("cut on purpose")

    return StreamingResponse(body(), media_type="text/event-stream", headers=headers)


def chat_stream(text: str, finish: str | None = "stop", thinking: str = "", **more: Any) -> Response:
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "demo-1"}
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 7,
        "total_tokens": 17,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    half = len(text) // 2
    chunks: list[Any] = [
        {**base, "choices": [{"index": 0, "delta": {"role": "assistant", "content": piece}, "finish_reason": None}]}
        for piece in (text[:half], text[half:])
    ]
    if thinking:
        chunks.insert(
            0, {**base, "choices": [{"index": 0, "delta": {"reasoning_content": thinking}, "finish_reason": None}]}
        )
    if finish:
        chunks.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        chunks += [{**base, "choices": [], "usage": usage}, "[DONE]"]
    return sse(chunks, **more)


def message_stream(text: str, stop: str | None = "end_turn", thinking: str = "", **more: Any) -> Response:
    """Anthropic's events for an answer; without `stop` the stream ends too early."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "demo-1", "content": [], "usage": usage}
    events: list[Any] = [{"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}}]
    blocks = [("thinking", "thinking_delta", thinking)] if thinking else []
    for index, (kind, delta, content) in enumerate([*blocks, ("text", "text_delta", text)]):
        empty = {"type": kind, kind: "", **({"signature": ""} if kind == "thinking" else {})}
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events.append({"type": "content_block_delta", "index": index, "delta": {"type": delta, kind: content}})
        events.append({"type": "content_block_stop", "index": index})
    if stop:
        delta = {"stop_reason": stop, "stop_sequence": None}
        spent = {"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 3}}
        events += [{"type": "message_delta", "delta": delta, "usage": spent}, {"type": "message_stop"}]
    return sse([(event["type"], event) for event in events], **more)


def response_stream(text: str, status: str = "completed", **more: Any) -> Response:
    """OpenAI's events for a response; an empty status ends the stream too early."""
    part = {"type": "output_text", "text": text, "annotations": []}
    if status == "refused":
        part, status = {"type": "refusal", "refusal": text}, "completed"
    response = {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "demo-1",
        "status": status,
        "output": [{"id": "o", "type": "message", "role": "assistant", "status": "completed", "content": [part]}],
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "error": {"code": "server_error", "message": "it broke"} if status == "failed" else None,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 4},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 3},
            "total_tokens": 17,
        },
    }
    kind = f"response.{status}"
    events = [(kind, {"type": kind, "sequence_number": 1, "response": response})] if status else []
    return sse(
        [("response.created", {"type": "response.created", "sequence_number": 0, "response": response}), *events], **more
    )


class Stage:
    """An application that hands every request to the one that is on."""

    def __init__(self) -> None:
        self.app: Any = None
        self.url = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)


@contextlib.contextmanager
def serving(app: Any, port: int = 0) -> Iterator[str]:
    """Serve on loopback in a thread."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    config = uvicorn.Config(app, log_level="critical", ws="none", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        sock.close()
