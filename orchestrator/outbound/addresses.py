"""Which network addresses may be called.

A name is resolved and all its addresses are checked; for a while connections go only to these, so a later change in DNS has
no effect. Metadata and link-local addresses are always refused, private ones unless the operator allowed them.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Awaitable[list[str]]]
AddressRule = Callable[[str], str | None]
"""Returns why an address may not be called, or None."""

CHECKED_S = 30.0

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
    """All addresses of a host name."""
    return _addresses(await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM))


def resolve_blocking(host: str, port: int) -> list[str]:
    """`resolve`, for use in a thread."""
    return _addresses(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


def check(host: str, addresses: Iterable[str], rule: AddressRule) -> None:
    """Raises `AddressRefused` if one of a host's addresses may not be called."""
    for address in addresses:
        if (why := rule(address)) is not None:
            raise AddressRefused(f"{host} is {address}: {why}")


class CheckedAddresses:
    """The checked addresses of one host; valid for `CHECKED_S`."""

    def __init__(
        self, host: str, rule: AddressRule, *, monotonic: Callable[[], float] = time.monotonic, resolver: Resolver = resolve
    ) -> None:
        self._host = host
        self._rule = rule
        self._monotonic = monotonic
        self._resolver = resolver
        self._by_port: dict[int, tuple[float, list[str]]] = {}

    async def of(self, port: int) -> list[str]:
        """Raises `AddressRefused`, or `OSError` if the name cannot be resolved."""
        now = self._monotonic()
        if port in self._by_port and self._by_port[port][0] > now:
            return self._by_port[port][1]
        addresses = await self._resolver(self._host, port)
        check(self._host, addresses, self._rule)
        self._by_port[port] = now + CHECKED_S, addresses
        return addresses

    def forget(self) -> None:
        self._by_port.clear()


def _addresses(entries: Iterable[tuple[Any, ...]]) -> list[str]:
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def _inner(ip: IpAddress) -> IpAddress:
    """The IPv4 address embedded in some IPv6 addresses."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None) or ip
