"""What every command needs at its start: the settings, the service's address, a client, a place for its words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from orchestrator.cli.api.client import Client
from orchestrator.cli.api.connection import Connection, find, read_settings
from orchestrator.cli.view.output import Output
from orchestrator.settings import Settings


@dataclass(frozen=True)
class Command:
    settings: Settings
    connection: Connection
    client: Client
    out: Output

    def connect(self) -> Client:
        """Another client, for another thread."""
        return Client(self.connection)


@contextmanager
def command(as_json: bool) -> Iterator[Command]:
    settings = read_settings()
    connection = find(settings)
    with Client(connection) as client:
        yield Command(settings, connection, client, Output(as_json=as_json))


def now() -> datetime:
    return datetime.now(UTC)
