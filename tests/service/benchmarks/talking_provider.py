"""A provider with one model, as a server of its own on 127.0.0.1, which answers what a function says to the messages."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.service.benchmarks.chat_events import chat_events
from tests.service.runner.fake_orchestrator import serving

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
        return StreamingResponse(
            chat_events(body["model"], self.reply(body["messages"]), tokens=(10, 5)), media_type="text/event-stream"
        )


@contextlib.contextmanager
def talking_provider() -> Iterator[TalkingProvider]:
    provider = TalkingProvider()
    with serving(provider.app()) as url:
        provider.url = f"{url}/v1"
        yield provider
