"""Time-outs for slow clients: disconnects those that do not read their response, send the head of a request very slowly, or
never complete it.

uvicorn waits for the first two forever, and closing such a connection cleanly would wait for the client as well, so it is
aborted. Its fast parser has no limit on heads and accepts a request without a host. Bodies have their own limit and deadline
in `orchestrator.http.access.guard`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

TAKE_LIMIT_S = 30.0
HEAD_LIMIT_S = 30.0
MAX_HEAD_BYTES = 64 << 10
"""Limit for URL, headers and trailers of a request, including what the parser has buffered."""


class _BadRequest(Exception):
    """Raised in a callback of the parser; becomes a 400."""


class HttpTimeouts(HttpToolsProtocol):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._taking = _Timer()
        self._head = _Timer()
        self._head_bytes = 0
        self._unread_bytes = 0
        self._hosts = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        self._unread_bytes += len(data)  # callbacks of the parser subtract it again
        super().data_received(data)
        if self._unread_bytes > MAX_HEAD_BYTES + len(data) and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")
        self._expect_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = self._hosts = 0

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        if len(name) == 4 and name.lower() == b"host":
            self._hosts += 1
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unread_bytes = 0
        if self._hosts != 1 and (self._hosts or self.parser.get_http_version() == "1.1"):
            raise _BadRequest("a request has one host")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread_bytes = 0
        super().on_body(body)

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

    def _count(self, size: int) -> None:
        self._unread_bytes = 0
        self._head_bytes += size
        if self._head_bytes > MAX_HEAD_BYTES:
            raise _BadRequest("its head is too large")

    def _expect_head(self) -> None:
        """Run the timer while a request is due or incomplete; uvicorn's own keep-alive timer covers idle connections."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._head.stop()
        elif not self.transport.is_closing():
            self._head.start(self.loop, HEAD_LIMIT_S, self.transport.abort)


class _Timer:
    """Runs once; starting it while it runs has no effect."""

    def __init__(self) -> None:
        self._handle: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop, seconds: float, call: Callable[[], object]) -> None:
        if self._handle is None:
            self._handle = loop.call_later(seconds, call)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
