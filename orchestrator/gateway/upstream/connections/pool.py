"""Connections to one provider, directly to a checked address or through a proxy. Good ones are kept for the next call."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from orchestrator.gateway.upstream.connections.connection import (
    ConnectFailed,
    ConnectionBroke,
    HttpConnection,
    ReceiveTimeout,
)
from orchestrator.gateway.upstream.connections.framing import BadResponse, tunnel_request
from orchestrator.outbound.addresses import AddressRule, CheckedAddresses, Resolver, check, resolve
from orchestrator.outbound.proxies import Proxy, address_of
from orchestrator.outbound.tls import why_refused

CONNECT_S = 10.0
KEEP_S = 15.0
MAX_IDLE = 1000
"""As many as the highest number of concurrent calls, so that one burst's connections serve the next."""


class Connections:
    def __init__(
        self,
        origin: tuple[str, str, int],
        *,
        rule: AddressRule,
        tls: ssl.SSLContext,
        proxy: Proxy | None = None,
        idle_s: float,
        monotonic: Callable[[], float],
        resolver: Resolver = resolve,
    ) -> None:
        scheme, self._host, self._port = origin
        self._tls = tls if scheme == "https" else None
        self._proxy = proxy
        self._proxy_tls = tls if proxy is not None and proxy.scheme == "https" else None
        self._idle_s = idle_s
        self._monotonic = monotonic
        self._rule = rule
        self._addresses = CheckedAddresses(self._host, rule, monotonic=monotonic, resolver=resolver)
        self._idle: deque[tuple[float, HttpConnection]] = deque()
        self._closed = False

    @asynccontextmanager
    async def one(self) -> AsyncIterator[HttpConnection]:
        """A connection for one exchange, kept afterwards if the exchange was complete. Raises `ConnectFailed`."""
        connection = self._idle_connection() or await self._made()
        try:
            yield connection
        finally:
            now = self._monotonic()
            if connection.usable and not self._closed:
                self._idle.append((now, connection))
            else:
                connection.abort()
            while self._idle and (self._idle[0][0] < now - KEEP_S or len(self._idle) > MAX_IDLE):
                self._idle.popleft()[1].abort()

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop()[1].abort()

    def _idle_connection(self) -> HttpConnection | None:
        oldest = self._monotonic() - KEEP_S
        while self._idle:
            since, connection = self._idle.pop()
            if connection.usable and since >= oldest:
                return connection
            connection.abort()
        return None

    async def _made(self) -> HttpConnection:
        if self._proxy is not None:
            return await self._through(self._proxy)
        failed = ConnectFailed(f"{self._host} has no address")
        try:
            addresses = await self._addresses.of(self._port)
        except OSError as error:
            raise ConnectFailed(f"{self._host} cannot be resolved: {error.strerror or error}") from error
        for address in addresses:
            try:
                return await self._connect(address, self._port, self._tls, self._host)
            except ConnectFailed as error:
                failed = error
                if error.lasting:
                    break
        self._addresses.forget()  # the host may have moved
        raise failed

    async def _through(self, proxy: Proxy) -> HttpConnection:
        """The proxy resolves names; a literal address is subject to the address rule as usual."""
        if (address := address_of(self._host)) is not None:
            check(self._host, [str(address)], self._rule)
        try:
            connection = await self._connect(proxy.host, proxy.port, self._proxy_tls, proxy.host)
        except ConnectFailed as error:
            why = f"the proxy {proxy} of {proxy.variable} cannot be used: {error}"
            raise ConnectFailed(why, lasting=error.lasting) from error
        return connection if self._tls is None else await self._tunnel(connection, proxy, self._tls)

    async def _tunnel(self, carrier: HttpConnection, proxy: Proxy, tls: ssl.SSLContext) -> HttpConnection:
        try:
            async with asyncio.timeout(CONNECT_S):
                head = await carrier.request(tunnel_request(self._host, self._port, proxy))
            if not 200 <= head.status < 300:
                raise refused_by(proxy, head.status)
            async with _connecting():
                connection = HttpConnection(self._idle_s)
                transport = await asyncio.get_running_loop().start_tls(
                    carrier.detach(), connection, tls, server_hostname=self._host
                )
                if transport is None:
                    raise ConnectFailed(f"the proxy {proxy} closed the connection")
                connection.connection_made(transport)
                return connection
        except (ConnectionBroke, ReceiveTimeout, BadResponse, TimeoutError) as error:
            carrier.abort()
            why = str(error) or f"no answer within {CONNECT_S:g} s"
            raise ConnectFailed(f"the proxy {proxy} does not connect to {self._host}: {why}") from error
        except BaseException:
            carrier.abort()
            raise

    async def _connect(self, host: str, port: int, tls: ssl.SSLContext | None, name: str) -> HttpConnection:
        async with _connecting():
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: HttpConnection(self._idle_s), host, port, ssl=tls, server_hostname=name if tls else None
            )
            return connection


def refused_by(proxy: Proxy, status: int) -> ConnectFailed:
    """The proxy answered instead of the provider."""
    if status == 407:
        needed = "other credentials" if proxy.credentials else "credentials"
        why = f"wants {needed}: {proxy.variable}={proxy.scheme}://user:password@{proxy}"
        return ConnectFailed(f"the proxy {proxy} answered 407, it {why}", lasting=True)
    why = f"the proxy {proxy} of {proxy.variable} refuses: it answered {status}; NO_PROXY lists what is called directly"
    return ConnectFailed(why, lasting=status < 500)


@asynccontextmanager
async def _connecting() -> AsyncIterator[None]:
    """Turn errors while connecting into `ConnectFailed` with a reason."""
    try:
        async with asyncio.timeout(CONNECT_S):
            yield
    except ssl.SSLCertVerificationError as error:
        raise ConnectFailed(why_refused(error), lasting=True) from error
    except ssl.SSLError as error:
        raise ConnectFailed(f"TLS failed: {error.reason or error}") from error
    except TimeoutError as error:
        raise ConnectFailed(f"no connection within {CONNECT_S:g} s") from error
    except OSError as error:
        raise ConnectFailed(error.strerror or str(error)) from error
