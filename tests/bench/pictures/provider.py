"""A provider of four models and a receiver of webhooks: answers after a while, with tokens by the question."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

from aiohttp import web

TOKENS = {"atlas-large": 2600, "atlas-small": 900, "quartz-2": 1700, "heron-70b": 1100}


def spread(*parts: object) -> float:
    """A number between 0 and 1 that is always the same for the same parts."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6]) / 2**48


def output_tokens(model: str, question: str) -> int:
    return int(TOKENS.get(model, 500) * (0.3 + 1.9 * spread(model, question, "tokens") ** 2))


class Provider:
    def __init__(self) -> None:
        self.latency_s = 0.004
        self.messages: list[dict[str, Any]] = []
        self.url = ""

    async def __aenter__(self) -> Provider:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._answer)
        app.router.add_post("/hook/{name}", self._hook)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _hook(self, request: web.Request) -> web.Response:
        self.messages.append(await request.json())
        return web.Response(status=404 if request.match_info["name"] == "gone" else 204)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        model, question = body["model"], str(body["messages"][-1]["content"])
        out = output_tokens(model, question)
        await asyncio.sleep(self.latency_s * (0.5 + out / 1000))
        usage = {"prompt_tokens": 420 + out // 7, "completion_tokens": out, "total_tokens": 420 + out // 7 + out}
        base = {"id": "c", "created": 1, "model": model}
        if not body.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
            return web.json_response({**base, "object": "chat.completion", "choices": [choice], "usage": usage})
        delta = {"index": 0, "delta": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
        lines = [
            json.dumps({**base, "object": "chat.completion.chunk", **chunk})
            for chunk in ({"choices": [delta]}, {"choices": [], "usage": usage})
        ]
        text = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"])
        return web.Response(text=text, content_type="text/event-stream")
