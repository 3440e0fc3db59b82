"""HTTP for downloads that calls only addresses which somebody judged, at every redirect anew.

A name is resolved once per request, every address it has is judged, and the connection goes to one of these: what a name
server says a moment later does not matter. The certificate is still checked against the name.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

import httpx

Judge = Callable[[str], Callable[[str], str | None]]
"""For a host: why one of its addresses may not be called, or None."""
Resolver = Callable[[str, int], list[str]]


class AddressRefused(Exception):
    """The address may not be called; the message says why."""


def resolve(host: str, port: int) -> list[str]:
    """All addresses of a name."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class JudgedTransport(httpx.BaseTransport):
    def __init__(self, judge: Judge, *, resolver: Resolver = resolve) -> None:
        self._judge = judge
        self._resolver = resolver
        self._inner = httpx.HTTPTransport(trust_env=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        try:
            addresses = self._resolver(host, port)
        except (OSError, UnicodeError) as error:
            raise httpx.ConnectError(f"{host} cannot be resolved: {error}") from error
        why_not = self._judge(host)
        for address in addresses:
            if (why := why_not(address)) is not None:
                raise AddressRefused(f"{host} is {address}: {why}")
        failed: httpx.ConnectError | None = None
        for address in addresses:
            pinned = httpx.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
            try:
                return self._inner.handle_request(pinned)
            except httpx.ConnectError as error:
                failed = error
        raise failed or httpx.ConnectError(f"{host} has no address")

    def close(self) -> None:
        self._inner.close()
