"""One try at a provider, as an interface: `DemoUpstream` and `HttpUpstream` implement it, `CallAttempt` calls it."""

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
    streamed: bool = False


Received = Callable[[float | None], None]
"""Called when the provider has accepted the call, with how long it reports its limit as used up, if it does."""


class Upstream(Protocol):
    @property
    def server(self) -> str:
        """Identifies the server, to tell it from another of the same name; never contains the key."""

    async def ask(self, call: Call, received: Received) -> Reply:
        """Ask once.

        Raises `UpstreamError` for failures at the provider, `GatewayError` for calls that never got there.
        """

    def notes(self, model: str) -> list[str]:
        """How requests for this model differ from the usual ones, and what its server ignores, in sentences."""

    async def close(self) -> None: ...
