"""Who really calls, where a reverse proxy stands in between: `X-Forwarded-For` and `-Proto` are believed from the listed
networks only. From the right, every hop that is a listed proxy is passed over; the first that is not is the caller, so that
nobody can write an address of their own choice in front."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MOST_HOPS = 20


class TrustedProxies:
    """The outermost layer: everything behind it sees the caller's address and scheme as the connection's own."""

    def __init__(self, app: ASGIApp, *, networks: Sequence[Network]) -> None:
        self._app = app
        self._networks = networks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer = scope.get("client")
        if scope["type"] == "http" and peer and trusted(peer[0], self._networks):
            headers = Headers(scope=scope)
            address = caller_address(peer[0], ",".join(headers.getlist("x-forwarded-for")), self._networks)
            scope = {**scope, "client": (address, peer[1] if address == peer[0] else 0)}
            scheme = headers.get("x-forwarded-proto", "").rpartition(",")[2].strip().lower()
            if scheme in ("http", "https"):
                scope["scheme"] = scheme
        await self._app(scope, receive, send)


def caller_address(peer: str, forwarded: str, networks: Sequence[Network]) -> str:
    """The nearest hop that is no proxy of ours; the peer itself where the header says nothing that can be used."""
    nearest = peer
    for hop in reversed(forwarded.split(",")[-MOST_HOPS:]):
        address = read_address(hop)
        if address is None:
            return nearest
        nearest = str(address)
        if not trusted(nearest, networks):
            return nearest
    return nearest


def trusted(host: str, networks: Sequence[Network]) -> bool:
    address = read_address(host)
    return address is not None and any(address in network for network in networks)


def read_address(text: str) -> Address | None:
    """An address as proxies write it: bare, in brackets, with a port, or IPv4 inside IPv6."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address
