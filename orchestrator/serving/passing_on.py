"""Passes requests on to another process of this service, over a Unix socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"te", b"trailer"})
MOST_AT_ONCE = 1000


class PassOn:
    """An ASGI application: the one behind the socket. Time-outs are those of the process there."""

    def __init__(self, path: str) -> None:
        limits = httpx.Limits(max_connections=MOST_AT_ONCE)
        transport = httpx.AsyncHTTPTransport(uds=path, limits=limits, trust_env=False)
        self._client = httpx.AsyncClient(transport=transport, timeout=None, trust_env=False)  # noqa: S113 -- see above

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        headers = [(name, value) for name, value in scope["headers"] if name not in HOP_BY_HOP]
        has_body = any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])
        url = httpx.URL("http://orchestrator").copy_with(
            raw_path=scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        )
        content = request.stream() if has_body else None
        asked = self._client.build_request(scope["method"], url, headers=headers, content=content)
        try:
            answer = await self._client.send(asked, stream=True)
        except ClientDisconnect:
            return
        except httpx.TransportError:
            await Response("the orchestrator cannot be reached now; ask again", 503, {"retry-after": "1"})(
                scope, receive, send
            )
            return
        try:
            response = StreamingResponse(_body(answer), answer.status_code)
            response.raw_headers = [
                (name.lower(), value) for name, value in answer.headers.raw if name.lower() not in HOP_BY_HOP
            ]
            await response(scope, receive, send)
        finally:
            await asyncio.shield(answer.aclose())

    async def close(self) -> None:
        await self._client.aclose()


async def _body(answer: httpx.Response) -> AsyncIterator[bytes]:
    async for piece in answer.aiter_raw():
        yield piece
