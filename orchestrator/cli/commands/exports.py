"""The command `export`: results of a run as a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.commands.runs import RunArgument
from orchestrator.cli.context import command
from orchestrator.cli.errors import BadUsage
from orchestrator.cli.view.output import JsonFlag, write_out
from orchestrator.cli.view.text import clean

FORMATS = ("jsonl", "csv", "json")


def export(
    run_id: RunArgument,
    form: Annotated[str | None, typer.Option("--format", "-f", help=f"{', '.join(FORMATS)}; default: jsonl.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write to this file, not to standard output.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Write the results of a run: an item per line (jsonl, csv), or one log with everything (json)."""
    form = form or ("json" if as_json else "jsonl")
    if form not in FORMATS:
        raise BadUsage(f"--format {clean(form)!r} is not one of {', '.join(FORMATS)}.")
    if as_json and form != "json":
        raise BadUsage("--json prints one JSON value; leave out --format, or leave out --json.")
    with command(as_json) as cmd:
        found = str(cmd.client.find_run(run_id)["id"])
        with cmd.client.export(found, form) as pieces:
            if out is None:
                write_out(pieces)
                return
            part = out.with_name(f".{out.name}.{os.getpid()}.part")
            try:
                with part.open("wb") as file:
                    file.writelines(pieces)
                part.replace(out)
            except OSError as error:
                raise BadUsage(f"--out {clean(out)} cannot be written: {error.strerror}.") from error
            finally:
                part.unlink(missing_ok=True)
        cmd.out.note(f"Wrote {clean(out)}.")
