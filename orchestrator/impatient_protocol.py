"""A server's patience with its clients: one that does not take its answer, or dribbles the head of its request, is cut off.

uvicorn waits for both for ever, and closing such a connection in good order would wait for the client as well; so it is
aborted. Bodies have a deadline of their own in `orchestrator.api.middleware`.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

TAKE_LIMIT_S = 30.0
HEAD_LIMIT_S = 30.0


class ImpatientProtocol(H11Protocol):
    _taking: asyncio.TimerHandle | None = None
    _head: asyncio.TimerHandle | None = None

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
        self._taking = _stopped(self._taking)
        self._head = _stopped(self._head)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taking = self._taking or self.loop.call_later(TAKE_LIMIT_S, self.transport.abort)

    def resume_writing(self) -> None:
        self._taking = _stopped(self._taking)
        super().resume_writing()

    def _expect_head(self) -> None:
        """Run the clock while a request is due or half there; uvicorn's own keep-alive timer covers plain silence."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._head = _stopped(self._head)
        elif self._head is None and not self.transport.is_closing():
            self._head = self.loop.call_later(HEAD_LIMIT_S, self.transport.abort)


def _stopped(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
