"""The demo provider: recorded answers to the bundled sample problems, some wrong on purpose. It needs no key, and its
models' names say that they are demos. It knows nothing of grading: it finds a problem's text in the prompt and returns
what was recorded for it."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Awaitable, Callable
from typing import Protocol

from orchestrator.gateway.calls import Call, sample_index
from orchestrator.gateway.edge.errors import Code, GatewayError
from orchestrator.gateway.protocols.protocol import Finish, PlainReply, TokenUsage
from orchestrator.gateway.upstream.port import Received, Reply
from orchestrator.system.clock import Clock

DEMO_PROVIDER = "demo"
DEMO_MODELS = (
    "demo-strong",
    "demo-weak",
    "demo-eval-good",
    "demo-eval-syntax",
    "demo-eval-import",
    "demo-eval-constant",
    "demo-eval-hostile",
)
UNKNOWN_PROMPT = (
    "This is Benchyard's demo provider. It only knows recorded answers to the bundled sample problems, and none of them "
    "is in this prompt. Configure a real provider to have other questions answered."
)
_FINISH = {
    "max_tokens": Finish.LENGTH,
    "length": Finish.LENGTH,
    "refusal": Finish.REFUSAL,
    "content_filter": Finish.CONTENT_FILTER,
}


class DemoAnswer(Protocol):
    """One recorded answer."""

    @property
    def text(self) -> str: ...
    @property
    def thinking(self) -> str | None: ...
    @property
    def stop_reason(self) -> str: ...
    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...


class DemoAnswers(Protocol):
    """All recorded answers of one demo model."""

    def find(self, prompt_text: str, sample: int) -> DemoAnswer | None: ...


class DemoUpstream:
    """Answers after a delay within `latency_s`; the same call always has the same delay."""

    server = DEMO_PROVIDER

    def __init__(
        self,
        load: Callable[[str], DemoAnswers],
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]],
        latency_s: tuple[float, float] = (0.005, 0.3),
        seed: int = 0,
    ) -> None:
        self._load = load
        self._loaded: dict[str, DemoAnswers] = {}
        self._clock = clock
        self._sleep = sleep
        self._latency_s = latency_s
        self._seed = seed

    async def ask(self, call: Call, received: Received) -> Reply:
        received(None)
        model = call.request.model
        if model not in DEMO_MODELS:
            raise GatewayError(404, Code.NOT_FOUND, f"the demo provider has only {', '.join(DEMO_MODELS)}, not {model}")
        if model not in self._loaded:
            self._loaded[model] = self._load(model)
        digest = hashlib.sha256(f"{self._seed} {model} {call.key}".encode()).hexdigest()
        await self._sleep(random.Random(digest).uniform(*self._latency_s))
        answer = self._loaded[model].find(call.request.prompt_text, sample_index(call.key))
        finish = Finish.STOP if answer is None else _FINISH.get(answer.stop_reason, Finish.STOP)
        return Reply(
            call.wire.compose(
                PlainReply(
                    id=digest[:24],
                    model=model,
                    created=int(self._clock.now().timestamp()),
                    text=UNKNOWN_PROMPT if answer is None else answer.text,
                    thinking="" if answer is None else answer.thinking or "",
                    finish=finish,
                    usage=_usage(call, answer),
                )
            )
        )

    def notes(self, model: str) -> list[str]:
        return []

    async def close(self) -> None:
        """Nothing to close."""


def _usage(call: Call, answer: DemoAnswer | None) -> TokenUsage:
    if answer is None:
        return TokenUsage(len(call.request.prompt_text) // 4, len(UNKNOWN_PROMPT) // 4)
    thinking = len(answer.thinking or "")
    share = thinking / max(thinking + len(answer.text), 1)
    return TokenUsage(answer.input_tokens, answer.output_tokens, reasoning_tokens=int(answer.output_tokens * share))
