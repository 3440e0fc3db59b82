"""One try at a provider, as an interface: `DemoUpstream` and `HttpUpstream` implement it, `sender` calls it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from orchestrator.gateway.calls import Call
from orchestrator.gateway.protocols.protocol import Message


@dataclass(frozen=True)
class Reply:
    """A whole answer."""

    message: Message


Received = Callable[[float | None], None]
"""Told when the provider has taken the call and works on it, and for how long it says that its limit is now used up."""


class Upstream(Protocol):
    @property
    def server(self) -> str:
        """What answers here, for telling it from another that has the same name: never the key."""

    async def ask(self, call: Call, received: Received) -> Reply:
        """Ask once.

        Raises `UpstreamError` for what happened at the provider, `GatewayError` for what never got there.
        """

    async def close(self) -> None: ...
