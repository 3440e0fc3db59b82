"""An OpenAI-compatible server that refuses `max_completion_tokens` and the temperature, and notes what it was sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orchestrator.serving.runner_listener import QuietServer, server_config


@dataclass
class StrictLab:
    """`refused`: fields that it refuses by name. `tokens`: how many it reports for an answer, whatever the limit."""

    refused: tuple[str, ...] = ("max_completion_tokens", "temperature")
    tokens: int | None = None
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    lists: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    async def _chat(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.headers.append(dict(request.headers))
        self.bodies.append(body)
        for name in self.refused:
            if name in body:
                return JSONResponse({"error": {"message": f"Unsupported parameter: {name}", "param": name}}, 400)
        limit = body.get("max_tokens") or body.get("max_completion_tokens") or 5
        usage = {"prompt_tokens": 9, "completion_tokens": self.tokens or limit, "total_tokens": 9 + limit}
        answer = {"id": "x", "model": body["model"], "created": 1}
        if not body.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", "content": "1 2 3"}, "finish_reason": "length"}
            return JSONResponse({**answer, "object": "chat.completion", "choices": [choice], "usage": usage})
        chunk = {**answer, "object": "chat.completion.chunk"}
        delta = {"index": 0, "delta": {"role": "assistant", "content": "1 2 3"}, "finish_reason": "length"}
        events = [{**chunk, "choices": [delta]}, {**chunk, "choices": [], "usage": usage}]
        text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        return Response(text, media_type="text/event-stream")

    async def _list(self, request: Request) -> Response:
        self.lists.append(dict(request.headers))
        return JSONResponse({"data": [{"id": "m"}, {"id": "n"}]})

    @asynccontextmanager
    async def served(self) -> AsyncIterator[StrictLab]:
        routes = [
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
            Route("/v1/models", self._list, methods=["GET"]),
        ]
        server = QuietServer(server_config(Starlette(routes=routes), "127.0.0.1", 0))
        task = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        self.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
        try:
            yield self
        finally:
            server.should_exit = True
            await task
