"""Whether a service runs for this data directory: some commands go through it, and do without it where there is none."""

from __future__ import annotations

from orchestrator.cli.context import Command
from orchestrator.cli.errors import CliError
from orchestrator.cli.local import service_process


def service_runs(cmd: Command) -> bool:
    """One that is named counts as running; so does whoever holds the data directory, or answers to its token."""
    if cmd.connection.given or service_process.holder(cmd.settings.data.absolute()) is not None:
        return True
    if cmd.connection.token is None:
        return False
    try:
        cmd.client.benchmarks()
    except CliError:
        return False
    return True
