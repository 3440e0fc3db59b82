"""Who waits for what, in a sentence for people: "waiting for anthropic: 429, next try in 12 s"."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from orchestrator.system.clock import Clock

WORTH_SAYING_S = 1.0
"""A shorter wait is not shown."""


@dataclass(frozen=True)
class Wait:
    since: float
    sentence: Callable[[], str]


class WaitBoard:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waits: dict[tuple[str, str], Wait] = {}

    @contextmanager
    def waiting(self, flight: tuple[str, str], sentence: Callable[[], str]) -> Iterator[None]:
        """The call waits for the length of the block."""
        self._waits[flight] = Wait(self._clock.monotonic(), sentence)
        try:
            yield
        finally:
            self._waits.pop(flight, None)

    def status(self, run_id: str) -> str | None:
        """What the run's longest waiting call waits for, or None when nothing waits long enough to be said."""
        waits = [wait for (run, _), wait in self._waits.items() if run == run_id]
        oldest = min(waits, key=lambda wait: wait.since, default=None)
        if oldest is None or self._clock.monotonic() - oldest.since < WORTH_SAYING_S:
            return None
        return oldest.sentence()


def next_try(provider: str, reason: str, seconds: float) -> str:
    return f"waiting for {provider}: {reason}, next try in {math.ceil(seconds)} s"
