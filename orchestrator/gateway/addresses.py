"""Which network addresses may be called, and a transport that connects only to an address that was judged.

A name is resolved, every address it has is judged, and for a while connections go to these and no others: what a name
server says a moment later does not matter. Metadata and link-local addresses are refused always, private ones
unless the operator allowed them for that provider.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Awaitable[list[str]]]
Judge = Callable[[str], str | None]
"""Why an address may not be called, or None."""

JUDGED_S = 30.0
KEEP_S = 15.0
MAX_IDLE = 200

_METADATA = frozenset(map(ipaddress.ip_address, ("100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")))
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class AddressRefused(Exception):
    """The address may not be called; the message says why."""


def refusal(address: str, *, allow_private: bool) -> str | None:
    """Why an address may not be called, or None."""
    ip = _inner(ipaddress.ip_address(address.partition("%")[0]))
    if ip in _METADATA or ip.is_link_local:
        return "it is a link-local or metadata address"
    if ip.is_unspecified or ip.is_multicast or (ip.is_reserved and not ip.is_loopback):
        return "it is not the address of a host"
    if not ip.is_global and not allow_private:
        return "it is a private address, which the operator has not allowed for this provider"
    return None


async def resolve(host: str, port: int) -> list[str]:
    """All addresses of a name."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class PinnedTransport(httpx.AsyncBaseTransport):
    """Connects to judged addresses of the one host it is for; the certificate is still checked against the name.

    Each request under way has a lane, a transport with one connection: a common pool looks at all its connections for
    every request, which is too much when hundreds are under way. Judged addresses are good for `JUDGED_S`. `judge` replaces
    the rule that `allow_private` stands for.
    """

    def __init__(
        self,
        host: str,
        *,
        allow_private: bool = False,
        judge: Judge | None = None,
        tls: ssl.SSLContext | None = None,
        resolver: Resolver = resolve,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = host
        self._judge = judge or (lambda address: refusal(address, allow_private=allow_private))
        self._tls = tls or ssl.create_default_context()
        self._resolver = resolver
        self._monotonic = monotonic
        self._judged: dict[int, tuple[float, list[str]]] = {}
        self._idle: deque[tuple[float, httpx.AsyncHTTPTransport]] = deque()
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        host, port = request.url.host, request.url.port or (443 if request.url.scheme == "https" else 80)
        if host != self._host:
            raise AddressRefused(f"{host} is not the host that the key was given for")
        addresses = await self._addresses(host, port)
        lane = self._take_lane()
        try:
            response = await self._through(lane, request, addresses)
        except httpx.ConnectError:
            self._judged.pop(port, None)  # it may have moved
            await lane.aclose()
            raise
        except BaseException:
            await lane.aclose()
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _LaneStream(response.stream, lambda: self._give_lane(lane))
        return response

    async def aclose(self) -> None:
        self._closed = True
        while self._idle:
            await self._idle.pop()[1].aclose()

    async def _through(self, lane: httpx.AsyncHTTPTransport, request: httpx.Request, addresses: list[str]) -> httpx.Response:
        failed: httpx.ConnectError | None = None
        for address in addresses:
            pinned = httpx.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": self._host},
            )
            try:
                return await lane.handle_async_request(pinned)
            except httpx.ConnectError as error:
                failed = error
        raise failed or httpx.ConnectError(f"{self._host} has no address")

    def _take_lane(self) -> httpx.AsyncHTTPTransport:
        if self._idle:
            return self._idle.pop()[1]
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=KEEP_S)
        return httpx.AsyncHTTPTransport(verify=self._tls, trust_env=False, limits=limits)

    async def _give_lane(self, lane: httpx.AsyncHTTPTransport) -> None:
        now = self._monotonic()
        if self._closed:
            await lane.aclose()
        else:
            self._idle.append((now, lane))
        while self._idle and (self._idle[0][0] < now - KEEP_S or len(self._idle) > MAX_IDLE):
            await self._idle.popleft()[1].aclose()

    async def _addresses(self, host: str, port: int) -> list[str]:
        now = self._monotonic()
        if port in self._judged and self._judged[port][0] > now:
            return self._judged[port][1]
        try:
            addresses = await self._resolver(host, port)
        except OSError as error:
            raise httpx.ConnectError(f"{host} cannot be resolved: {error.strerror or error}") from error
        for address in addresses:
            why = self._judge(address)
            if why is not None:
                raise AddressRefused(f"{host} is {address}: {why}")
        self._judged[port] = now + JUDGED_S, addresses
        return addresses


class _LaneStream(httpx.AsyncByteStream):
    """The body of an answer; its lane is free again when it is closed."""

    def __init__(self, inner: httpx.AsyncByteStream, free: Callable[[], Awaitable[None]]) -> None:
        self._inner = inner
        self._free: Callable[[], Awaitable[None]] | None = free

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            yield piece

    async def aclose(self) -> None:
        free, self._free = self._free, None
        try:
            await self._inner.aclose()
        finally:
            if free is not None:
                await free()


def _inner(ip: IpAddress) -> IpAddress:
    """The IPv4 address that some IPv6 addresses stand for."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None) or ip
