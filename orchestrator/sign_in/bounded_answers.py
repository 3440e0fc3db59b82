"""What is read from an identity provider is small and comes soon, or is not read at all."""

from __future__ import annotations

import httpx

from orchestrator.outbound.transports import ProxiedTransport

MOST_BYTES = 512 * 1024
TIMEOUT = httpx.Timeout(10.0, connect=5.0)


class TooMuch(httpx.TransportError):
    """The answer is larger than any of a provider's documents."""


class SmallAnswers(httpx.AsyncBaseTransport):
    def __init__(self, inner: httpx.AsyncBaseTransport | None = None) -> None:
        self._inner = inner or ProxiedTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.headers["accept-encoding"] = "identity"  # what is packed may be large once it is unpacked
        response = await self._inner.handle_async_request(request)
        try:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise TooMuch("the answer is packed although that was not asked for", request=request)
            body = b""
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > MOST_BYTES:
                    raise TooMuch(f"the answer is larger than {MOST_BYTES} bytes", request=request)
        finally:
            await response.aclose()
        return httpx.Response(response.status_code, headers=_kept(response.headers), content=body, request=request)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _kept(headers: httpx.Headers) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers.items() if name not in ("content-length", "transfer-encoding")]
