"""The service in the foreground, as `benchyard serve` without options starts it: with the settings of the environment."""

from __future__ import annotations

import sys

from orchestrator.cli.api.connection import read_settings
from orchestrator.cli.errors import CliError
from orchestrator.server import serve as run_server


def serve() -> None:
    """Serves until told to stop, and exits with the service's code."""
    try:
        settings = read_settings()
    except CliError as error:
        sys.stderr.write(f"benchyard: {error}\n")
        sys.exit(error.exit_code)
    sys.exit(run_server(settings))
