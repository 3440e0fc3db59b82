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
from collections.abc import Awaitable, Callable

import httpx

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Awaitable[list[str]]]
Judge = Callable[[str], str | None]
"""Why an address may not be called, or None."""

JUDGED_S = 30.0

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


class Addresses:
    """The judged addresses of one host, good for `JUDGED_S`."""

    def __init__(
        self, host: str, judge: Judge, *, monotonic: Callable[[], float] = time.monotonic, resolver: Resolver = resolve
    ) -> None:
        self._host = host
        self._judge = judge
        self._monotonic = monotonic
        self._resolver = resolver
        self._judged: dict[int, tuple[float, list[str]]] = {}

    async def judged(self, port: int) -> list[str]:
        """Raises `AddressRefused`, or `OSError` when the name cannot be resolved."""
        now = self._monotonic()
        if port in self._judged and self._judged[port][0] > now:
            return self._judged[port][1]
        addresses = await self._resolver(self._host, port)
        for address in addresses:
            why = self._judge(address)
            if why is not None:
                raise AddressRefused(f"{self._host} is {address}: {why}")
        self._judged[port] = now + JUDGED_S, addresses
        return addresses

    def forget(self) -> None:
        self._judged.clear()


class PinnedTransport(httpx.AsyncBaseTransport):
    """For httpx, for what is asked rarely: connects to judged addresses of the one host it is for. The certificate is still
    checked against the name. `judge` replaces the rule that `allow_private` stands for."""

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
        judge = judge or (lambda address: refusal(address, allow_private=allow_private))
        self._addresses = Addresses(host, judge, monotonic=monotonic, resolver=resolver)
        self._inner = httpx.AsyncHTTPTransport(verify=tls or ssl.create_default_context(), trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        host, port = request.url.host, request.url.port or (443 if request.url.scheme == "https" else 80)
        if host != self._host:
            raise AddressRefused(f"{host} is not the host that the key was given for")
        try:
            addresses = await self._addresses.judged(port)
        except OSError as error:
            raise httpx.ConnectError(f"{host} cannot be resolved: {error.strerror or error}") from error
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
                return await self._inner.handle_async_request(pinned)
            except httpx.ConnectError as error:
                failed = error
        self._addresses.forget()  # it may have moved
        raise failed or httpx.ConnectError(f"{host} has no address")

    async def aclose(self) -> None:
        await self._inner.aclose()


def _inner(ip: IpAddress) -> IpAddress:
    """The IPv4 address that some IPv6 addresses stand for."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None) or ip
