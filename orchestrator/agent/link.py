"""An agent's requests to its orchestrator, retried for a while if there is no answer."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import structlog

log = structlog.get_logger()

PATIENCE_S = 600.0
MAX_PAUSE_S = 15.0
TRY_AGAIN = frozenset({408, 425, 429})


class LinkRefused(Exception):
    """The orchestrator refused the request; retrying will not help."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


class LinkLost(Exception):
    """The orchestrator did not answer for too long."""


class Link:
    def __init__(
        self,
        client: httpx.AsyncClient,
        *,
        patience_s: float = PATIENCE_S,
        rng: random.Random,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._patience_s = patience_s
        self._rng = rng
        self._now = now
        self._sleep = sleep

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        give_up, failures = self._now() + self._patience_s, 0
        while True:
            pause = min(0.5 * 2**failures, MAX_PAUSE_S) * self._rng.uniform(0.75, 1.25)
            try:
                answer = await self._client.post(path, json=body)
                if answer.is_success:
                    return dict(answer.json())
                trouble = _sentence(answer)
                if answer.status_code < 500 and answer.status_code not in TRY_AGAIN:
                    sentence = f"the orchestrator refused {path} with status {answer.status_code}: {trouble}"
                    raise LinkRefused(sentence, answer.status_code)
            except (httpx.HTTPError, ValueError) as error:
                trouble = f"{type(error).__name__}: {error}"
            if self._now() + pause > give_up:
                raise LinkLost(f"the orchestrator did not answer for {self._patience_s:.0f} s; the last error: {trouble}")
            failures += 1
            log.warning("no answer", action="agent_retry", path=path, trouble=trouble, pause_s=round(pause, 1))
            await self._sleep(pause)


def _sentence(answer: httpx.Response) -> str:
    try:
        body = answer.json()
        return str(body.get("detail") or body.get("title"))
    except (ValueError, AttributeError):
        return answer.text[:300]
