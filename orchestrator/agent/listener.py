"""Forwards requests of the containers on this machine to the orchestrator, the only thing they can reach.

Containers are on a network without outside access, as on the orchestrator's own machine. Only the paths for runners are
forwarded, streamed in both directions over the agent's own connection.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

FORWARDED = ("/runner/", "/gateway/")
HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "host",
        "content-length",
    }
)


def forwarding_app(client: httpx.AsyncClient) -> ASGIApp:
    """`client` has the orchestrator's address but no token: each runner sends its own."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        await (await _forward(client, Request(scope, receive)))(scope, receive, send)

    return app


async def _forward(client: httpx.AsyncClient, request: Request) -> Response:
    path = request.url.path
    if not path.startswith(FORWARDED) or ".." in path:
        return _problem(404, "runners can use only their own paths here")
    query = f"?{request.url.query}" if request.url.query else ""
    headers = [(name, value) for name, value in request.headers.items() if name not in HOP_BY_HOP]
    length = request.headers.get("content-length")
    if length is not None:
        headers.append(("content-length", length))
    has_body = request.method not in ("GET", "HEAD")
    outgoing = client.build_request(
        request.method, path.lstrip("/") + query, headers=headers, content=request.stream() if has_body else None
    )
    try:
        answer = await client.send(outgoing, stream=True)
    except (httpx.HTTPError, ClientDisconnect) as error:
        return _problem(503, f"the orchestrator cannot be reached from this machine: {type(error).__name__}: {error}")
    answer_headers = {name: value for name, value in answer.headers.items() if name not in HOP_BY_HOP}
    return StreamingResponse(_body(answer), answer.status_code, answer_headers)


async def _body(answer: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for piece in answer.aiter_raw():
            yield piece
    finally:
        await answer.aclose()


def _problem(status: int, detail: str) -> Response:
    body = {"type": "about:blank", "title": "Agent", "status": status, "detail": detail}
    return JSONResponse(body, status, {"retry-after": "1"}, media_type="application/problem+json")
