"""A server's patience with its clients: one that does not take its answer, or dribbles the head of its request, is cut off.

uvicorn waits for both for ever, and closing such a connection in good order would wait for the client as well; so it is
aborted. Bodies have a deadline of their own in `orchestrator.api.middleware`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

TAKE_LIMIT_S = 30.0
HEAD_LIMIT_S = 30.0


class ImpatientProtocol(H11Protocol):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._taking = _Timer()
        self._head = _Timer()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._taking.stop()
        self._head.stop()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taking.start(self.loop, TAKE_LIMIT_S, self.transport.abort)

    def resume_writing(self) -> None:
        self._taking.stop()
        super().resume_writing()

    def _expect_head(self) -> None:
        """Run the clock while a request is due or half there; uvicorn's own keep-alive timer covers plain silence."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._head.stop()
        elif not self.transport.is_closing():
            self._head.start(self.loop, HEAD_LIMIT_S, self.transport.abort)


class _Timer:
    """Runs once; started again while it runs, it goes on."""

    def __init__(self) -> None:
        self._handle: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop, seconds: float, call: Callable[[], object]) -> None:
        if self._handle is None:
            self._handle = loop.call_later(seconds, call)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
