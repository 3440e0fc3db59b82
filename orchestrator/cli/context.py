"""What every command needs: settings, the service's address, a client and its output; and command groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

import typer
from typer.core import TyperGroup

from orchestrator.cli.api.client import Client
from orchestrator.cli.api.connection import Connection, find, read_settings
from orchestrator.cli.view.output import JsonFlag, Output
from orchestrator.settings import Settings


@dataclass(frozen=True)
class Command:
    settings: Settings
    connection: Connection
    client: Client
    out: Output

    def connect(self) -> Client:
        """Creates a client for another thread."""
        return Client(self.connection)


@contextmanager
def command(as_json: bool) -> Iterator[Command]:
    settings = read_settings()
    connection = find(settings)
    with Client(connection) as client:
        yield Command(settings, connection, client, Output(as_json=as_json))


def command_group(summary: str, default: str = "list") -> typer.Typer:
    """A command group; without a command it runs the one named `default`."""
    app = typer.Typer(help=summary)

    @app.callback(invoke_without_command=True)
    def run_default(context: typer.Context, as_json: JsonFlag = False) -> None:
        if context.invoked_subcommand is None:
            callback = cast("TyperGroup", context.command).commands[default].callback
            assert callback is not None
            callback(as_json=as_json)

    return app


def now() -> datetime:
    return datetime.now(UTC)
