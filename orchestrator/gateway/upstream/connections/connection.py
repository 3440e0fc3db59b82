"""One connection to a provider, for one request after the other. Made by `connections`.

An answer is passed on in batches: models send a piece for every few letters, and waking the reader for each would cost more
than everything else. The end of the answer, and anything that looks like its last event, is passed on at once.
"""

from __future__ import annotations

import asyncio
from typing import cast

from orchestrator.gateway.upstream.connections.framing import Answer, BadResponse, Head

BATCH_BYTES = 16 << 10
BATCH_S = 0.25
FULL_BYTES = 256 << 10


class ConnectFailed(Exception):
    """No connection was made, so nothing was sent. `lasting`: retrying will not help."""

    def __init__(self, why: str, *, lasting: bool = False) -> None:
        super().__init__(why)
        self.lasting = lasting


class ConnectionBroke(Exception):
    """The connection ended before the answer did."""


class ReceiveTimeout(Exception):
    """Nothing was received for too long."""


class HttpConnection(asyncio.Protocol):
    def __init__(self, idle_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle_s = idle_s
        self._transport: asyncio.Transport | None = None
        self._answer: Answer | None = None
        """The answer to the current request; None between requests."""
        self._waiting_bytes = 0
        """The part of the answer that was received but not passed on yet."""
        self._last_words: tuple[bytes, ...] = ()
        self._ended: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._batch: asyncio.TimerHandle | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._heard_at = 0.0
        self._paused = False

    @property
    def usable(self) -> bool:
        """Whether another request may be sent."""
        return self._ended is None and self._answer is None

    @property
    def all_here(self) -> bool:
        """Whether the whole answer has arrived, so that `piece` will not wait."""
        return self._answer is not None and self._answer.done

    async def request(self, data: bytes, last_words: tuple[bytes, ...] = ()) -> Head:
        """Send a request and return the head of the answer. Data that contains one of `last_words` is passed on at once.

        Raises `ConnectionBroke`, `ReceiveTimeout` or `BadResponse`.
        """
        if self._transport is None or not self.usable:
            raise ConnectionBroke("the connection is closed")
        self._answer = answer = Answer()
        self._last_words, self._waiting_bytes = last_words, 0
        self._heard_at = self._loop.time()
        self._watch = self._loop.call_later(self._idle_s, self._look)
        self._transport.write(data)
        while answer.head is None:
            if self._ended is not None:
                raise self._ended
            await self._wait()
        return answer.head

    async def piece(self) -> bytes:
        """The next piece of the body, empty at its end: the connection is then usable again if the provider keeps it
        open. Raises the same errors as `request`."""
        assert self._answer is not None
        while True:
            if self._answer.pieces:
                piece = b"".join(self._answer.pieces)
                self._answer.pieces.clear()
                self._waiting_bytes = 0
                self._resume()
                return piece
            if self._answer.done:
                self._finish(self._answer)
                return b""
            if self._ended is not None:
                raise self._ended
            self._resume()
            await self._wait()

    def detach(self) -> asyncio.Transport:
        """Hand the transport over to another protocol."""
        assert self._transport is not None
        self._stop_watching()
        return self._transport

    def abort(self) -> None:
        self._stop_watching()
        if self._ended is None:
            self._ended = ConnectionBroke("the connection was closed here")
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports are not of this class

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer is None or self._ended is not None:
            self.abort()  # an answer without a request; the next request must not get it
            return
        self._heard_at = self._loop.time()
        had_head = answer.head is not None
        try:
            answer.feed(data)
        except BadResponse as error:
            self._end(error)
            self.abort()
            return
        self._waiting_bytes += len(data)
        if answer.done or not had_head or self._waiting_bytes >= BATCH_BYTES or self._has_last_words(data):
            self._wake()
        elif self._batch is None and self._waiter is not None:
            self._batch = self._loop.call_later(BATCH_S, self._wake)
        if self._waiting_bytes >= FULL_BYTES and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> None:
        if self._answer is not None and not self._answer.done:
            try:
                self._answer.end()
            except BadResponse as error:
                self._end(ConnectionBroke(str(error)))
        self._end(ConnectionBroke("the provider closed the connection"))

    def connection_lost(self, error: Exception | None) -> None:
        if error is None:
            self.eof_received()
        else:
            self._end(ConnectionBroke(str(error) or type(error).__name__))
        self._stop_watching()

    def _has_last_words(self, data: bytes) -> bool:
        for words in self._last_words:  # noqa: SIM110 -- a generator would cost more than the whole check
            if words in data:
                return True
        return False

    def _finish(self, answer: Answer) -> None:
        self._stop_watching()
        if answer.lasting and not answer.extra and self._ended is None:
            self._answer = None
        else:
            self.abort()

    def _resume(self) -> None:
        if self._paused and self._ended is None and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._batch is not None:
            self._batch.cancel()
            self._batch = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _end(self, why: Exception) -> None:
        if self._ended is None:
            self._ended = why
        self._wake()

    def _look(self) -> None:
        """Check whether anything arrived recently: one timer per request, not one per piece."""
        left_s = self._heard_at + self._idle_s - self._loop.time()
        if left_s > 0 or self._paused:
            self._watch = self._loop.call_later(max(left_s, 0.05), self._look)
            return
        self._end(ReceiveTimeout(f"nothing came for {self._idle_s:g} s"))
        self.abort()

    def _stop_watching(self) -> None:
        for timer in (self._watch, self._batch):
            if timer is not None:
                timer.cancel()
        self._watch = self._batch = None
