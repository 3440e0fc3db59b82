"""A small HTTP/1.1 server for the clients inside a harness; the only module that imports h11.

A request is read whole, then answered whole. If the client leaves while its answer is being made, the work on it is
cancelled.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import h11

PIECE = 1 << 16
IDLE_S = 600.0
MAX_EARLY_BYTES = 1 << 20
"""What a client may send of its next requests before it has its answer."""


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    too_large: bool = False


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    delivered: Callable[[], None] = lambda: None
    """Called when the reply was sent."""
    lost: Callable[[], None] = lambda: None
    """Called if the client left before that."""


Answer = Callable[[Request], Awaitable[Reply]]


async def serve(listener: socket.socket, answer: Answer, *, max_body_bytes: int) -> asyncio.Server:
    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _Connection(reader, writer, answer, max_body_bytes).serve()
        except (OSError, h11.ProtocolError, TimeoutError):
            pass  # the client left, or does not speak HTTP
        finally:
            writer.close()

    listener.setblocking(False)
    return await asyncio.start_server(connection, sock=listener)


class _ClientGone(OSError):
    """The client closed its connection."""


class _Connection:
    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer, max_body_bytes: int
    ) -> None:
        self._reader, self._writer, self._answer, self._max = reader, writer, answer, max_body_bytes
        self._http = h11.Connection(h11.SERVER)

    async def serve(self) -> None:
        while True:
            request = await self._request()
            reply = await self._made(request)
            try:
                await self._send(reply)
            except BaseException:
                reply.lost()
                raise
            reply.delivered()
            if request.too_large or self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                return
            self._http.start_next_cycle()

    async def _request(self) -> Request:
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                await self._read_more(head)
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > self._max:
                    return _request(head, b"", too_large=True)
            elif isinstance(event, h11.EndOfMessage):
                return _request(head, bytes(body))
            else:
                raise _ClientGone

    async def _read_more(self, head: h11.Request | None) -> None:
        if head is not None and self._http.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            self._writer.write(self._http.send(go_on))
        async with asyncio.timeout(IDLE_S):
            self._receive(await self._reader.read(PIECE))

    def _receive(self, piece: bytes) -> None:
        if not piece:
            raise _ClientGone
        self._http.receive_data(piece)

    async def _made(self, request: Request) -> Reply:
        """The reply. What the client sends meanwhile is kept; if it closes the connection, the work is cancelled."""
        answering = asyncio.ensure_future(self._answer(request))
        reading = asyncio.ensure_future(self._reader.read(PIECE))
        early = 0
        try:
            while not answering.done():
                await asyncio.wait((answering, reading), return_when=asyncio.FIRST_COMPLETED)
                if reading.done() and not answering.done():
                    early += len(reading.result())
                    if early > MAX_EARLY_BYTES:
                        raise _ClientGone
                    self._receive(reading.result())
                    reading = asyncio.ensure_future(self._reader.read(PIECE))
            if reading.done() and reading.exception() is None and reading.result():
                self._receive(reading.result())
            return answering.result()
        finally:
            for task in (answering, reading):
                task.cancel()
            await asyncio.gather(answering, reading, return_exceptions=True)

    async def _send(self, reply: Reply) -> None:
        headers = {"content-type": "application/json", **reply.headers, "content-length": str(len(reply.body))}
        head = h11.Response(status_code=reply.status, headers=list(headers.items()))
        parts = (self._http.send(head), self._http.send(h11.Data(data=reply.body)), self._http.send(h11.EndOfMessage()))
        self._writer.write(b"".join(part or b"" for part in parts))
        await self._writer.drain()


def _request(head: h11.Request | None, body: bytes, *, too_large: bool = False) -> Request:
    assert head is not None
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    path = head.target.decode("latin-1").partition("?")[0]
    return Request(head.method.decode("latin-1"), path, headers, body, too_large)
