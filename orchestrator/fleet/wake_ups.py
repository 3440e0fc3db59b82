"""Wakes a request that is held until there is something for it."""

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
        """Enter it before looking whether there is something: what comes in between sets the event."""
        event = self._waiting[name] = asyncio.Event()
        try:
            yield event
        finally:
            if self._waiting.get(name) is event:
                del self._waiting[name]
