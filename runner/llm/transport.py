"""How both SDKs connect to the gateway: as many connections as calls may need, each of which notices that it is dead."""

from __future__ import annotations

import httpx2

from runner.sockets import SOCKET_OPTIONS

MOST_CONNECTIONS, MOST_IDLE = 1000, 100


def gateway_transport() -> httpx2.AsyncHTTPTransport:
    """A new one, for a client of its own."""
    limits = httpx2.Limits(max_connections=MOST_CONNECTIONS, max_keepalive_connections=MOST_IDLE)
    return httpx2.AsyncHTTPTransport(trust_env=False, limits=limits, socket_options=SOCKET_OPTIONS)
