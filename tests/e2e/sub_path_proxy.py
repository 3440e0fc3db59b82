"""A reverse proxy as people put in front: serves another server under a path, as `python -m tests.e2e.sub_path_proxy PORT
UPSTREAM PATH`. Like nginx with a path in `proxy_pass` it strips the path and replaces the Host header."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

HOP = {"connection", "keep-alive", "transfer-encoding", "host", "te", "upgrade"}
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]


def proxy(upstream: str, front: str) -> Starlette:
    client = httpx.AsyncClient(base_url=upstream, timeout=None)

    async def forward(request: Request) -> Response:
        path = request.url.path
        if path != front and not path.startswith(f"{front}/"):
            return PlainTextResponse("another application lives here", 418)
        inner = path.removeprefix(front) or "/"
        headers = [(name, value) for name, value in request.headers.raw if name.decode() not in HOP]
        url = httpx.URL(inner, query=request.url.query.encode())
        has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
        body = request.stream() if has_body else None
        answer = await client.send(client.build_request(request.method, url, headers=headers, content=body), stream=True)

        async def pieces() -> AsyncIterator[bytes]:
            try:
                async for piece in answer.aiter_raw():
                    yield piece
            finally:
                await answer.aclose()

        response = StreamingResponse(pieces(), answer.status_code)
        response.raw_headers = [
            (name.lower(), value) for name, value in answer.headers.raw if name.lower().decode() not in HOP
        ]
        return response

    return Starlette(routes=[Route("/{path:path}", forward, methods=METHODS)])


if __name__ == "__main__":
    port, upstream, front = sys.argv[1:]
    uvicorn.run(proxy(upstream, front), host="127.0.0.1", port=int(port), log_level="warning")
