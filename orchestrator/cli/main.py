"""The `benchyard` command."""

from __future__ import annotations

import sys

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def benchyard() -> None:
    """Measure language models: one short-lived, sandboxed container per run."""


@app.command()
def serve() -> None:
    """Run the service in the foreground."""
    from orchestrator.server import serve as run
    from orchestrator.settings import Settings

    raise typer.Exit(run(Settings()))


def main() -> None:
    sys.exit(app())
