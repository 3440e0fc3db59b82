"""A provider with two models, as a server of its own on 127.0.0.1: `pupil` answers questions, `judge` grades answers.

The pupil answers what `answers` says for a word in the question. The judge compares the blocks of its prompt: an answer that
contains the reference is correct. What it says instead for answers with a certain word is in `sayings`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.service.benchmarks.chat_events import chat_events
from tests.service.runner.fake_orchestrator import serving

BLOCK = re.compile(r"<<(\w+) ([0-9a-f]{16})>>\n(.*?)\n<</\1 \2>>", re.DOTALL)


@dataclass
class JudgeProvider:
    answers: dict[str, str] = field(default_factory=dict)
    sayings: dict[str, list[str]] = field(default_factory=dict)
    """Word in an answer -> what the judge says, in order; the last is repeated."""
    broken: set[str] = field(default_factory=set)
    """Models that refuse every call."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Model and prompt of every request."""
    url: str = ""

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/v1/chat/completions", self._handle, methods=["POST"])])

    def asked_of(self, model: str) -> list[str]:
        return [prompt for name, prompt in self.asked if name == model]

    async def _handle(self, request: Request) -> Response:
        body = await request.json()
        model, prompt = body["model"], str(body["messages"][-1]["content"])
        self.asked.append((model, prompt))
        if model in self.broken:
            return JSONResponse({"error": {"message": "this key may not use it", "type": "permission"}}, 403)
        text, finish = self._reply(model, prompt)
        return StreamingResponse(chat_events(model, text, finish, tokens=(100, 10)), media_type="text/event-stream")

    def _reply(self, model: str, prompt: str) -> tuple[str, str]:
        if model == "pupil":
            return next((answer for word, answer in self.answers.items() if word in prompt), "I do not know."), "stop"
        blocks = {match[1]: match[3] for match in BLOCK.finditer(prompt)}
        for word, replies in self.sayings.items():
            if word in blocks["answer"]:
                text = replies.pop(0) if len(replies) > 1 else replies[0]
                return text.removesuffix("[cut]"), "length" if text.endswith("[cut]") else "stop"
        right = blocks["reference"].casefold() in blocks["answer"].casefold()
        return f"The reference is {blocks['reference']}.\nGrade: {'C' if right else 'I'}", "stop"


@contextlib.contextmanager
def judge_provider() -> Iterator[JudgeProvider]:
    provider = JudgeProvider()
    with serving(provider.app()) as url:
        provider.url = f"{url}/v1"
        yield provider
