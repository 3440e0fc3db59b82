"""The command `export`: the results of runs as files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.api.client import Client, run_path
from orchestrator.cli.commands.measuring.runs import RunArguments
from orchestrator.cli.context import command
from orchestrator.cli.errors import BadUsage
from orchestrator.cli.files.writing import whole_file
from orchestrator.cli.view.output import JsonFlag, write_out
from orchestrator.cli.view.text import clean

FORMATS = ("jsonl", "csv", "parquet", "junit", "inspect", "json")
TABLES = ("jsonl", "csv", "parquet")
BINARY = ("parquet", "inspect")


def export(
    run_ids: RunArguments,
    form: Annotated[str | None, typer.Option("--format", "-f", help=f"{', '.join(FORMATS)}; default: jsonl.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write to this file, not to standard output.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Write the results of runs: a row per item (jsonl, csv, parquet), JUnit XML, an Inspect log, or one JSON log.

    Several runs become one table (jsonl, csv, parquet), whose rows name their run and model.
    """
    form = form or ("json" if as_json else "jsonl")
    if form not in FORMATS:
        raise BadUsage(f"--format {clean(form)!r} is not one of {', '.join(FORMATS)}.")
    if as_json and form != "json":
        raise BadUsage("--json prints one JSON value; leave out --format, or leave out --json.")
    if len(run_ids) > 1 and form not in TABLES:
        raise BadUsage(f"--format {form} holds one run; several fit into {', '.join(TABLES)}.")
    if form in BINARY and out is None and sys.stdout.isatty():
        raise BadUsage(f"--format {form} is not text; name a file with --out, or send the output elsewhere.")
    with command(as_json) as cmd:
        whole_ids = [cmd.client.find_run_id(run_id) for run_id in run_ids]
        with download(cmd.client, whole_ids, form) as pieces:
            if out is None:
                write_out(pieces)
                return
            try:
                with whole_file(out) as file:
                    file.writelines(pieces)
            except OSError as error:
                raise BadUsage(f"--out {clean(out)} cannot be written: {error.strerror}.") from error
        cmd.out.note(f"Wrote {clean(out)}.")


def download(client: Client, run_ids: list[str], form: str) -> AbstractContextManager[Iterator[bytes]]:
    """The pieces of an export of one or several runs."""
    if len(run_ids) == 1:
        return client.download(f"{run_path(run_ids[0])}/export", format=form)
    return client.download("/api/exports", run_id=run_ids, format=form)
