"""Both clients behind one face, so that a test is written once: the blocking one on a thread, the other one awaited."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any

import anyio.to_thread
import httpx

from orchestrator.client import AsyncBenchyard, Benchyard

Before = Callable[[httpx.Request], None]
After = Callable[[httpx.Request, httpx.Response], None]


def nothing(*_: object) -> None:
    pass


class Watching(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Passes requests on, and lets a test see them and break things before and after."""

    def __init__(self, before: Before = nothing, after: After = nothing) -> None:
        self.before = before
        self.after = after
        self._blocking = httpx.HTTPTransport(verify=False)
        self._asynchronous = httpx.AsyncHTTPTransport(verify=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.before(request)
        response = self._blocking.handle_request(request)
        self.after(request, response)
        return response

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.before(request)
        response = await self._asynchronous.handle_async_request(request)
        self.after(request, response)
        return response

    def close(self) -> None:
        self._blocking.close()

    async def aclose(self) -> None:
        await self._asynchronous.aclose()


class CutAfter(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The body of an answer, whose connection breaks after so many pieces."""

    def __init__(self, body: Any, pieces: int) -> None:
        self._body = body
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        yield from itertools.islice(self._body, self._pieces)
        raise httpx.ReadError("the test cut it")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._pieces
        async for piece in self._body:
            yield piece
            left -= 1
            if not left:
                raise httpx.ReadError("the test cut it")

    def close(self) -> None:
        self._body.close()

    async def aclose(self) -> None:
        await self._body.aclose()


class Flavoured:
    """`await call("runs.get", ...)` and `await values("runs.list", ...)` on either client."""

    def __init__(self, is_async: bool, url: str, token: str | None = None, **options: Any) -> None:
        self.pauses: list[float] = []
        self._is_async = is_async

        async def pause(seconds: float) -> None:
            self.pauses.append(seconds)
            await anyio.sleep(0.01)

        def pause_here(seconds: float) -> None:
            self.pauses.append(seconds)
            time.sleep(0.01)

        sleep = pause if is_async else pause_here
        self.client: Any = (AsyncBenchyard if is_async else Benchyard)(url, token, **{"sleep": sleep, **options})

    def _method(self, name: str) -> Any:
        resource, method = name.split(".")
        return getattr(getattr(self.client, resource), method)

    async def call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        method = self._method(name)
        if self._is_async:
            return await method(*args, **kwargs)
        return await anyio.to_thread.run_sync(lambda: method(*args, **kwargs))

    async def values(self, name: str, /, *args: Any, **kwargs: Any) -> list[Any]:
        method = self._method(name)
        if self._is_async:
            async with aclosing(method(*args, **kwargs)) as values:
                return [value async for value in values]
        return await anyio.to_thread.run_sync(lambda: list(method(*args, **kwargs)))

    async def close(self) -> None:
        if self._is_async:
            await self.client.close()
        else:
            self.client.close()
