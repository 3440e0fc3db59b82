"""One connection to a provider: a request out, an answer in, one after the other. Made by `connections`.

The pieces of an answer are handed over in batches: a model sends a piece for every few letters, and waking somebody for each
would cost more than everything else. Until then they are kept as they came; only what may be the end is looked at sooner.
"""

from __future__ import annotations

import asyncio
from typing import cast

from orchestrator.gateway.upstream.http_framing import MAX_HEAD_BYTES, BadResponse, Body, Head, body_of, parse_head

BATCH_BYTES = 16 << 10
BATCH_S = 0.25
FULL_BYTES = 256 << 10


class ConnectFailed(Exception):
    """No connection was made, so nothing was sent. `lasting`: trying again will not help."""

    def __init__(self, why: str, *, lasting: bool = False) -> None:
        super().__init__(why)
        self.lasting = lasting


class ConnectionBroke(Exception):
    """The connection ended before the answer did."""


class Silence(Exception):
    """Nothing came for too long."""


class HttpConnection(asyncio.Protocol):
    def __init__(self, idle_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle_s = idle_s
        self._transport: asyncio.Transport | None = None
        self._head_bytes = bytearray()
        self._head: Head | None = None
        self._body: Body | None = None
        self._raw: list[bytes] = []
        """What came and was not taken apart yet, `_raw_size` bytes."""
        self._raw_size = 0
        self._pieces: list[bytes] = []
        self._last_words: tuple[bytes, ...] = ()
        self._ended: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._batch: asyncio.TimerHandle | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._heard_at = 0.0
        self._busy = self._paused = False

    @property
    def usable(self) -> bool:
        """Another request may be sent on it."""
        return self._ended is None and not self._busy

    @property
    def all_here(self) -> bool:
        """All of the answer has come: `piece` will not wait."""
        self._unframe()
        return self._body is not None and self._body.done

    async def request(self, data: bytes, last_words: tuple[bytes, ...] = ()) -> Head:
        """Send a request; the head of its answer. What has one of `last_words` in it is handed over at once.

        Raises `ConnectionBroke`, `Silence` or `BadResponse`."""
        if self._transport is None or not self.usable:
            raise ConnectionBroke("the connection is closed")
        self._busy, self._head, self._body, self._last_words = True, None, None, last_words
        self._heard_at = self._loop.time()
        self._watch = self._loop.call_later(self._idle_s, self._look)
        self._transport.write(data)
        while self._head is None:
            if self._ended is not None:
                raise self._ended
            await self._wait()
        return self._head

    async def piece(self) -> bytes:
        """The next piece of the body, or nothing at its end: then the connection is usable again, if the provider keeps it
        open. Raises as `request` does."""
        assert self._body is not None
        while True:
            self._unframe()
            if self._pieces:
                piece = b"".join(self._pieces)
                self._pieces.clear()
                self._resume()
                return piece
            if self._body.done:
                self._finish()
                return b""
            if self._ended is not None:
                raise self._ended
            self._resume()
            await self._wait()

    def abort(self) -> None:
        self._stop_watching()
        if self._ended is None:
            self._ended = ConnectionBroke("the connection was closed here")
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not of this class

    def data_received(self, data: bytes) -> None:
        if not self._busy or self._ended is not None:
            self.abort()  # nobody asked
            return
        self._heard_at = self._loop.time()
        try:
            if self._body is None:
                self._take_head(data)
            else:
                self._take(data)
        except BadResponse as error:
            self._end(error)
            self.abort()

    def eof_received(self) -> None:
        self._unframe()
        if self._body is not None and not self._body.done:
            try:
                self._body.end()
            except BadResponse as error:
                self._end(ConnectionBroke(str(error)))
        self._end(ConnectionBroke("the provider closed the connection"))

    def connection_lost(self, error: Exception | None) -> None:
        if error is None:
            self.eof_received()
        else:
            self._end(ConnectionBroke(str(error) or type(error).__name__))
        self._stop_watching()

    def _take_head(self, data: bytes) -> None:
        self._head_bytes += data
        while self._body is None:
            ends = [(at, len(mark)) for mark in (b"\r\n\r\n", b"\n\n") if (at := self._head_bytes.find(mark)) >= 0]
            if len(self._head_bytes) > MAX_HEAD_BYTES and (not ends or min(ends)[0] > MAX_HEAD_BYTES):
                raise BadResponse("its head is too long")
            if not ends:
                return
            at, length = min(ends)
            head, rest = parse_head(bytes(self._head_bytes[:at])), bytes(self._head_bytes[at + length :])
            self._head_bytes = bytearray(rest)
            if head.status < 200:
                if head.status == 101:
                    raise BadResponse("it changes the protocol")
                continue  # only to say that an answer will come
            self._head_bytes.clear()
            self._head, self._body = head, body_of(head)
            if rest:
                self._take(rest)
            self._wake()

    def _take(self, data: bytes) -> None:
        assert self._body is not None
        self._raw.append(data)
        self._raw_size += len(data)
        if self._raw_size >= BATCH_BYTES or self._body.may_end(data, self._raw_size) or self._is_last_word(data):
            self._wake()
        elif self._batch is None and self._waiter is not None:
            self._batch = self._loop.call_later(BATCH_S, self._wake)
        if self._raw_size >= FULL_BYTES and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def _is_last_word(self, data: bytes) -> bool:
        for words in self._last_words:  # noqa: SIM110 -- a generator costs more than all the rest
            if words in data:
                return True
        return False

    def _unframe(self) -> None:
        """Take apart what came: what belongs to the body, and whether it has ended."""
        if not self._raw or self._body is None:
            return
        data = b"".join(self._raw)
        self._raw.clear()
        self._raw_size = 0
        try:
            self._pieces += self._body.feed(data)
        except BadResponse as error:
            self._end(error)
            self.abort()

    def _finish(self) -> None:
        assert self._head is not None
        assert self._body is not None
        self._stop_watching()
        if self._head.lasting and not self._body.rest and self._ended is None:
            self._busy = False
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
        """Whether anything came lately: one timer per request, not one per piece."""
        left = self._heard_at + self._idle_s - self._loop.time()
        if left > 0 or self._paused:
            self._watch = self._loop.call_later(max(left, 0.05), self._look)
            return
        self._end(Silence(f"nothing came for {self._idle_s:g} s"))
        self.abort()

    def _stop_watching(self) -> None:
        for timer in (self._watch, self._batch):
            if timer is not None:
                timer.cancel()
        self._watch = self._batch = None
