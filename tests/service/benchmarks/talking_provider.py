"""A provider with one model, as a server of its own on 127.0.0.1, which answers what a function says to the messages."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

Messages = list[dict[str, str]]


@dataclass
class TalkingProvider:
    reply: Callable[[Messages], str] = lambda messages: "?"
    asked: list[Messages] = field(default_factory=list)
    url: str = ""

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/v1/chat/completions", self._handle, methods=["POST"])])

    async def _handle(self, request: Request) -> Response:
        body = await request.json()
        self.asked.append(body["messages"])
        return StreamingResponse(_stream(body["model"], self.reply(body["messages"])), media_type="text/event-stream")


async def _stream(model: str, text: str) -> AsyncIterator[bytes]:
    def event(delta: dict[str, Any], reason: str | None, **more: Any) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": choices, **more}
        return f"data: {json.dumps(chunk)}\n\n".encode()

    yield event({"role": "assistant", "content": text}, None)
    yield event({}, "stop", usage={"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
    yield b"data: [DONE]\n\n"


@contextlib.contextmanager
def talking_provider() -> Iterator[TalkingProvider]:
    provider = TalkingProvider()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    provider.url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    server = uvicorn.Server(uvicorn.Config(provider.app(), log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
