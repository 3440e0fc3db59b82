"""The two ways to reach the service: blocking and asynchronous, with the same effects. `httpx` is used here only."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
from httpx_sse import EventSource, ServerSentEvent, SSEError

from orchestrator.client.errors import BenchyardError, ConnectionFailed, StoreFailed
from orchestrator.client.requests import Reply, Request
from orchestrator.client.steps import Close, Effect, NextEvent, NextPiece, Now, Open, Send, Sleep, StreamEvent
from orchestrator.outbound.tls import tls_context, why_refused_within

CONNECT_S = 5.0
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.ProxyError)
FAILURES = (httpx.HTTPError, httpx.StreamError, SSEError)
PIECE = 1 << 20
OK = 200


class Address:
    """Where the service is, and what every request to it needs."""

    def __init__(self, url: str, token: str | None, workspace: str | None) -> None:
        self.url = url.rstrip("/")
        self.headers = {"authorization": f"Bearer {token}"} if token else {}
        if workspace:
            self.headers["x-benchyard-workspace"] = workspace

    @property
    def is_local(self) -> bool:
        return (urlsplit(self.url).hostname or "") in LOOPBACK

    def options(self) -> dict[str, Any]:
        # Proxies configured for the internet are not used for a service on this machine.
        return {
            "base_url": self.url,
            "headers": self.headers,
            "trust_env": not self.is_local,
            "verify": tls_context(),
        }

    def failed(self, error: Exception) -> BenchyardError:
        """What the library's error means for the caller."""
        if isinstance(error, httpx.RequestError) and (url := _url_of(error)) is not None and self.is_elsewhere(url):
            return StoreFailed(url.netloc.decode(), f"did not send the whole file ({reason(error)})")
        return ConnectionFailed(self.url, reason(error), sent=not isinstance(error, NEVER_SENT))

    def check_store(self, response: httpx.Response) -> None:
        """Raises if the answer is another server's and not the file."""
        if response.status_code != OK and self.is_elsewhere(response.url):
            raise StoreFailed(response.url.netloc.decode(), f"answered {response.status_code}")

    def is_elsewhere(self, url: httpx.URL) -> bool:
        return url.netloc != httpx.URL(self.url).netloc


def reason(error: Exception) -> str:
    """Why there was no answer, in a few words."""
    if (why := why_refused_within(error)) is not None:
        return why
    if isinstance(error, httpx.ConnectError):
        return re.sub(r"^\[errno -?\d+\] ", "", str(error).lower())
    return "no answer in time" if isinstance(error, httpx.TimeoutException) else type(error).__name__


def _url_of(error: httpx.RequestError) -> httpx.URL | None:
    with suppress(RuntimeError):
        return error.request.url
    return None


def _arguments(request: Request[Any]) -> dict[str, Any]:
    headers: Mapping[str, str] = request.headers
    if isinstance(request.file, Path):  # so that nothing of a large file is held; the length lets the service refuse early
        headers = {**headers, "content-length": str(request.file.stat().st_size)}
    return {
        "method": request.method,
        "url": request.path,
        "params": request.params,
        "headers": headers,
        "json": request.json,
        "timeout": httpx.Timeout(request.timeout_s, connect=CONNECT_S),
    }


def _reply(response: httpx.Response, body: bytes) -> Reply:
    where = response.request.url.netloc.decode()
    return Reply(response.status_code, {name.lower(): value for name, value in response.headers.items()}, body, where)


def _value(read: ServerSentEvent | bytes) -> StreamEvent | bytes | None:
    """None for events without data, such as pings."""
    if isinstance(read, bytes):
        return read or None
    return StreamEvent.of(read.event, read.data, read.id) if read.data else None


class Blocking:
    """On the calling thread."""

    def __init__(
        self,
        address: Address,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.address = address
        self.http = httpx.Client(**address.options(), transport=transport)
        self.sleep = sleep
        self.monotonic = monotonic

    def close(self) -> None:
        self.http.close()

    @contextmanager
    def session(self) -> Iterator[BlockingSession]:
        session = BlockingSession(self)
        try:
            yield session
        finally:
            session.close()


class BlockingSession:
    """Performs the effects of one procedure, which has one answer open at a time."""

    def __init__(self, transport: Blocking) -> None:
        self._transport = transport
        self._opened: httpx.Response | None = None
        self._reading: Iterator[Any] | None = None

    def perform(self, effect: Effect) -> Any:
        try:
            match effect:
                case Send(request):
                    return self._send(request)
                case Open(request, redirects):
                    return self._open(request, redirects)
                case NextEvent() | NextPiece():
                    return self._next(isinstance(effect, NextEvent))
                case Close():
                    self.close()
                case Sleep(seconds):
                    self._transport.sleep(seconds)
                case Now():
                    return self._transport.monotonic()
        except FAILURES as error:
            raise self._transport.address.failed(error) from error
        return None

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
        self._opened = self._reading = None

    def _send(self, request: Request[Any]) -> Reply:
        http = self._transport.http
        if isinstance(request.file, Path):
            with request.file.open("rb") as content:
                response = http.request(**_arguments(request), content=content)
        else:
            response = http.request(**_arguments(request), content=request.file)
        return _reply(response, response.content)

    def _open(self, request: Request[Any], redirects: bool) -> Reply:
        self.close()
        http = self._transport.http
        self._opened = http.send(http.build_request(**_arguments(request)), stream=True, follow_redirects=redirects)
        self._transport.address.check_store(self._opened)
        return _reply(self._opened, b"" if self._opened.status_code == OK else self._opened.read())

    def _next(self, is_event: bool) -> Any:
        assert self._opened is not None
        if self._reading is None:
            self._reading = EventSource(self._opened).iter_sse() if is_event else self._opened.iter_bytes()
        for each in self._reading:
            if (value := _value(each)) is not None:
                return value
        return None


class Asynchronous:
    """On an event loop: asyncio's or trio's."""

    def __init__(
        self,
        address: Address,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.address = address
        self.http = httpx.AsyncClient(**address.options(), transport=transport)
        self.sleep = sleep
        self.monotonic = monotonic

    async def close(self) -> None:
        await self.http.aclose()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[AsynchronousSession]:
        session = AsynchronousSession(self)
        try:
            yield session
        finally:
            await session.close()


class AsynchronousSession:
    """The same as `BlockingSession`, awaited."""

    def __init__(self, transport: Asynchronous) -> None:
        self._transport = transport
        self._opened: httpx.Response | None = None
        self._reading: AsyncIterator[Any] | None = None

    async def perform(self, effect: Effect) -> Any:
        try:
            match effect:
                case Send(request):
                    return await self._send(request)
                case Open(request, redirects):
                    return await self._open(request, redirects)
                case NextEvent() | NextPiece():
                    return await self._next(isinstance(effect, NextEvent))
                case Close():
                    await self.close()
                case Sleep(seconds):
                    await self._transport.sleep(seconds)
                case Now():
                    return self._transport.monotonic()
        except FAILURES as error:
            raise self._transport.address.failed(error) from error
        return None

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.aclose()
        self._opened = self._reading = None

    async def _send(self, request: Request[Any]) -> Reply:
        content = _in_pieces(request.file) if isinstance(request.file, Path) else request.file
        response = await self._transport.http.request(**_arguments(request), content=content)
        return _reply(response, response.content)

    async def _open(self, request: Request[Any], redirects: bool) -> Reply:
        await self.close()
        http = self._transport.http
        built = http.build_request(**_arguments(request))
        self._opened = await http.send(built, stream=True, follow_redirects=redirects)
        self._transport.address.check_store(self._opened)
        return _reply(self._opened, b"" if self._opened.status_code == OK else await self._opened.aread())

    async def _next(self, is_event: bool) -> Any:
        assert self._opened is not None
        if self._reading is None:
            self._reading = EventSource(self._opened).aiter_sse() if is_event else self._opened.aiter_bytes()
        async for each in self._reading:
            if (value := _value(each)) is not None:
                return value
        return None


async def _in_pieces(path: Path) -> AsyncIterator[bytes]:
    async with await anyio.open_file(path, "rb") as file:
        while piece := await file.read(PIECE):
            yield piece
