"""Wakes requests that wait for something to happen."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator


class WakeUps:
    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Event] = {}

    def wake(self, name: str) -> None:
        if (event := self._waiting.get(name)) is not None:
            event.set()

    @contextlib.contextmanager
    def waiting(self, name: str) -> Iterator[asyncio.Event]:
        """Enter this before checking for work: anything that arrives after that sets the event."""
        event = self._waiting[name] = asyncio.Event()
        try:
            yield event
        finally:
            if self._waiting.get(name) is event:
                del self._waiting[name]
