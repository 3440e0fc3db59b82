"""A provider's batch interface, as an interface of ours: `openai_batches` and `anthropic_batches` implement it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from orchestrator.gateway.protocols.protocol import Message
from orchestrator.gateway.provider_batches.tables import BatchPart


@dataclass(frozen=True)
class RemoteBatch:
    """A batch as the provider tells it. `ended`: nothing more comes. `error`: why it failed as a whole. `files`: where its
    results are."""

    id: str
    ended: bool
    answered: int = 0
    failed: int = 0
    expires_at: datetime | None = None
    error: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallOutcome:
    """One line of the results: an answer, or why there is none. `again`: another batch may bring it."""

    custom_id: object
    message: Message | None = None
    error: str = ""
    again: bool = True


@dataclass(frozen=True)
class Search:
    """What the provider's list says about a batch whose creation was not confirmed. `wait`: it may be one whose calls
    cannot be read yet."""

    found: RemoteBatch | None = None
    wait: bool = False


Known = Callable[[Collection[str]], Awaitable[set[str]]]
"""Takes ids of batches at a provider; returns those that belong to a part."""


class BatchApi(Protocol):
    """All methods raise `BatchTrouble`. Only `create` costs money."""

    def line(self, custom_id: str, body: Message) -> bytes:
        """One request, as it stands in the file of a part."""

    @property
    def frame(self) -> tuple[bytes, bytes, bytes]:
        """What stands before, between and after the requests in the file."""

    async def upload(self, part: BatchPart, file: Path) -> str | None:
        """Bring the file to the provider, where that is a step of its own; returns its id there."""

    async def create(self, part: BatchPart, file: Path) -> RemoteBatch: ...

    async def find(self, part: BatchPart, known: Known) -> Search:
        """Look for the batch of a part whose `create` was not answered."""

    async def get(self, remote_id: str) -> RemoteBatch: ...

    async def cancel(self, remote_id: str) -> None: ...

    def results(self, remote: RemoteBatch) -> AsyncIterator[CallOutcome]: ...
