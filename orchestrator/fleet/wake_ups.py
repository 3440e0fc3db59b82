"""Wakes a request that is held on the line until there is something for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator


class Bells:
    def __init__(self) -> None:
        self._hung: dict[str, asyncio.Event] = {}

    def ring(self, name: str) -> None:
        if (bell := self._hung.get(name)) is not None:
            bell.set()

    @contextlib.contextmanager
    def hung(self, name: str) -> Iterator[asyncio.Event]:
        """Hang it up before looking whether there is something: what comes in between rings."""
        bell = self._hung[name] = asyncio.Event()
        try:
            yield bell
        finally:
            if self._hung.get(name) is bell:
                del self._hung[name]
