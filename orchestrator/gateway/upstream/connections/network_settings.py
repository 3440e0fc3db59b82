"""The proxy, the certificate authorities and the client certificate of one provider: its own, else the environment's."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from orchestrator.gateway.upstream.providers import Provider
from orchestrator.outbound.proxies import Proxies
from orchestrator.outbound.tls import ClientCertificate, tls_context


def proxies_of(provider: Provider, env: Mapping[str, str]) -> Proxies:
    """Raises `BadConfiguration` if the address of the proxy is invalid."""
    return Proxies.always(provider.proxy, f"proxy of {provider.name}") if provider.proxy else Proxies(env)


def tls_of(provider: Provider, env: Mapping[str, str]) -> ssl.SSLContext:
    """Raises `BadConfiguration` if a file cannot be used."""
    trusted = {**env, "BENCHYARD_CA_BUNDLE": provider.ca_bundle} if provider.ca_bundle else env
    return tls_context(
        trusted, ClientCertificate(provider.client_cert, provider.client_key) if provider.client_cert else None
    )
