"""Transports for httpx: through the proxy that the environment names, or to a checked address.

With a custom transport, httpx ignores the environment's proxies. A host name called through a proxy is resolved by the
proxy; if it can be resolved here too, the address rule is applied to that result.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable

import httpx

from orchestrator.outbound.addresses import (
    AddressRefused,
    AddressRule,
    CheckedAddresses,
    Resolver,
    check,
    resolve,
    resolve_blocking,
)
from orchestrator.outbound.proxies import Proxies, Proxy
from orchestrator.outbound.tls import tls_context, why_refused_within


class ProxiedTransport(httpx.AsyncBaseTransport):
    """For addresses that the operator configured."""

    def __init__(self, *, tls: ssl.SSLContext | None = None, proxies: Proxies | None = None) -> None:
        self._tls = tls or tls_context()
        self._proxies = proxies or Proxies(os.environ)
        self._transports: dict[Proxy | None, httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._send(request, self._proxies.of(*_origin(request.url)))

    async def _send(self, request: httpx.Request, proxy: Proxy | None) -> httpx.Response:
        try:
            return await self._by(proxy).handle_async_request(request)
        except (httpx.ConnectError, httpx.ProxyError) as error:
            raise _explained(error, proxy) from error

    async def aclose(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()

    def _by(self, proxy: Proxy | None) -> httpx.AsyncHTTPTransport:
        if proxy not in self._transports:
            self._transports[proxy] = httpx.AsyncHTTPTransport(
                verify=self._tls, trust_env=False, proxy=_for_httpx(proxy, self._tls)
            )
        return self._transports[proxy]


class PinnedTransport(ProxiedTransport):
    """Connects to checked addresses of its one host. The certificate is still checked against the name."""

    def __init__(
        self,
        host: str,
        rule: AddressRule,
        *,
        tls: ssl.SSLContext | None = None,
        proxies: Proxies | None = None,
        resolver: Resolver = resolve,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(tls=tls, proxies=proxies)
        self._host = host
        self._addresses = CheckedAddresses(host, rule, monotonic=monotonic, resolver=resolver)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        scheme, host, port = _origin(request.url)
        if host != self._host:
            raise AddressRefused(f"{host} is not the host that the key was given for")
        proxy = self._proxies.of(scheme, host, port)
        try:
            addresses = await self._addresses.of(port)
        except (OSError, UnicodeError) as error:
            if proxy is None:
                raise _unresolved(host, error) from error
        if proxy is not None:
            return await self._send(request, proxy)
        failed: httpx.ConnectError | None = None
        for address in addresses:
            try:
                return await self._send(_pinned(request, address), None)
            except httpx.ConnectError as error:
                failed = error
        self._addresses.forget()  # the host may have moved
        raise failed or httpx.ConnectError(f"{host} has no address")


class CheckingTransport(httpx.BaseTransport):
    """For threads, and for any host: each request, including each redirect, is checked by the rule for its host."""

    def __init__(
        self,
        rule_for: Callable[[str], AddressRule],
        *,
        proxies: Proxies | None = None,
        resolver: Callable[[str, int], list[str]] = resolve_blocking,
    ) -> None:
        self._rule_for = rule_for
        self._resolver = resolver
        self._tls = tls_context()
        self._proxies = proxies or Proxies(os.environ)
        self._transports: dict[Proxy | None, httpx.HTTPTransport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        scheme, host, port = _origin(request.url)
        proxy = self._proxies.of(scheme, host, port)
        addresses: list[str] = []
        try:
            addresses = self._resolver(host, port)
        except (OSError, UnicodeError) as error:
            if proxy is None:
                raise _unresolved(host, error) from error
        check(host, addresses, self._rule_for(host))
        if proxy is not None:
            return self._send(request, proxy)
        failed: httpx.ConnectError | None = None
        for address in addresses:
            try:
                return self._send(_pinned(request, address), None)
            except httpx.ConnectError as error:
                failed = error
        raise failed or httpx.ConnectError(f"{host} has no address")

    def _send(self, request: httpx.Request, proxy: Proxy | None) -> httpx.Response:
        try:
            return self._by(proxy).handle_request(request)
        except (httpx.ConnectError, httpx.ProxyError) as error:
            raise _explained(error, proxy) from error

    def close(self) -> None:
        for transport in self._transports.values():
            transport.close()

    def _by(self, proxy: Proxy | None) -> httpx.HTTPTransport:
        if proxy not in self._transports:
            self._transports[proxy] = httpx.HTTPTransport(
                verify=self._tls, trust_env=False, proxy=_for_httpx(proxy, self._tls)
            )
        return self._transports[proxy]


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)


def _unresolved(host: str, error: Exception) -> httpx.ConnectError:
    return httpx.ConnectError(f"{host} cannot be resolved: {getattr(error, 'strerror', None) or error}")


def _explained(error: httpx.TransportError, proxy: Proxy | None) -> httpx.TransportError:
    """The same error, naming the proxy, or what to do about the certificate."""
    if (why := why_refused_within(error)) is not None:
        return httpx.ConnectError(why)
    return error if proxy is None else type(error)(f"through the proxy {proxy} of {proxy.variable}: {error}")


def _for_httpx(proxy: Proxy | None, tls: ssl.SSLContext) -> httpx.Proxy | None:
    if proxy is None:
        return None
    return httpx.Proxy(proxy.url, auth=proxy.credentials, ssl_context=tls if proxy.scheme == "https" else None)


def _pinned(request: httpx.Request, address: str) -> httpx.Request:
    return httpx.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )
