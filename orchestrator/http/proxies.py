"""The caller's address and scheme behind reverse proxies: uvicorn's middleware with two more rules.

`X-Forwarded-For` and `X-Forwarded-Proto` are trusted only from listed networks; the caller is the last hop that is not a
listed proxy. IPv4 inside IPv6 counts as IPv4, and if a hop is not an address, the connection's own address is used.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any, cast

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PEER = "benchyard.peer"


class TrustedProxies:
    """The outermost layer: everything inside it sees the caller's address and scheme as the connection's own."""

    def __init__(self, app: ASGIApp, *, networks: Sequence[Network]) -> None:
        self._app = app
        mapped = [
            f"::ffff:{network.network_address}/{96 + network.prefixlen}" for network in networks if network.version == 4
        ]
        self._headers = ProxyHeadersMiddleware(cast(Any, self._behind_proxies), [*map(str, networks), *mapped])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._headers(cast(Any, {**scope, PEER: scope.get("client")}), cast(Any, receive), cast(Any, send))

    async def _behind_proxies(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer, client = scope.pop(PEER), scope.get("client")
        if client is not None and client != peer:
            try:
                address = ipaddress.ip_address(client[0])
                scope["client"] = (str(getattr(address, "ipv4_mapped", None) or address), client[1])
            except ValueError:
                scope["client"] = peer
        await self._app(scope, receive, send)
