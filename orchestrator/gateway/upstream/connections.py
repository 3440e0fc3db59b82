"""Connections to one provider: only to addresses that were judged, kept for the next call while they are good."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from orchestrator.gateway.upstream.addresses import Addresses, Resolver, refusal, resolve
from orchestrator.gateway.upstream.http_connection import ConnectFailed, HttpConnection

CONNECT_S = 10.0
KEEP_S = 15.0
MAX_IDLE = 1000
"""As many as there are calls at once at the most: those of a burst serve the next one."""


class Connections:
    def __init__(
        self,
        origin: tuple[str, str, int],
        *,
        allow_private: bool,
        tls: ssl.SSLContext,
        idle_s: float,
        monotonic: Callable[[], float],
        resolver: Resolver = resolve,
    ) -> None:
        scheme, self._host, self._port = origin
        self._tls = tls if scheme == "https" else None
        self._idle_s = idle_s
        self._monotonic = monotonic
        self._addresses = Addresses(
            self._host,
            lambda address: refusal(address, allow_private=allow_private),
            monotonic=monotonic,
            resolver=resolver,
        )
        self._idle: deque[tuple[float, HttpConnection]] = deque()
        self._closed = False

    @asynccontextmanager
    async def one(self) -> AsyncIterator[HttpConnection]:
        """A connection for one exchange; afterwards it is kept if the exchange was whole. Raises `ConnectFailed`."""
        connection = self._kept() or await self._made()
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

    def _kept(self) -> HttpConnection | None:
        oldest = self._monotonic() - KEEP_S
        while self._idle:
            since, connection = self._idle.pop()
            if connection.usable and since >= oldest:
                return connection
            connection.abort()
        return None

    async def _made(self) -> HttpConnection:
        failed = ConnectFailed(f"{self._host} has no address")
        try:
            addresses = await self._addresses.judged(self._port)
        except OSError as error:
            raise ConnectFailed(f"{self._host} cannot be resolved: {error.strerror or error}") from error
        for address in addresses:
            try:
                return await self._connect(address)
            except ConnectFailed as error:
                failed = error
                if error.lasting:
                    break
        self._addresses.forget()  # it may have moved
        raise failed

    async def _connect(self, address: str) -> HttpConnection:
        loop = asyncio.get_running_loop()
        name = self._host if self._tls else None
        try:
            async with asyncio.timeout(CONNECT_S):
                _, connection = await loop.create_connection(
                    lambda: HttpConnection(self._idle_s), address, self._port, ssl=self._tls, server_hostname=name
                )
        except ssl.SSLCertVerificationError as error:
            why = f"its certificate is not accepted: {error.verify_message}"
            raise ConnectFailed(why, lasting=True) from error
        except ssl.SSLError as error:
            raise ConnectFailed(f"TLS failed: {error.reason or error}") from error
        except TimeoutError as error:
            raise ConnectFailed(f"no connection within {CONNECT_S:g} s") from error
        except OSError as error:
            raise ConnectFailed(error.strerror or str(error)) from error
        return connection
