"""The command `export`: the results of runs as files."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.api.client import Client, Json, run_path
from orchestrator.cli.commands.measuring.runs import RunArguments
from orchestrator.cli.context import command
from orchestrator.cli.errors import BadUsage
from orchestrator.cli.files.writing import whole_file
from orchestrator.cli.trackers.tracked_run import tracked_run
from orchestrator.cli.view.output import JsonFlag, records_table, write_out
from orchestrator.cli.view.text import clean

FORMATS = ("jsonl", "csv", "parquet", "junit", "inspect", "json")
TABLES = ("jsonl", "csv", "parquet")
BINARY = ("parquet", "inspect")
FILES = {"jsonl": "jsonl", "csv": "csv", "inspect": "eval"}
"""What a tracker keeps with a run."""
TRACKERS = {
    "mlflow": "orchestrator.cli.trackers.mlflow_tracker",
    "wandb": "orchestrator.cli.trackers.wandb_tracker",
}
"""Imported only if they are asked for: their libraries are extras."""


def export(
    run_ids: RunArguments,
    form: Annotated[str | None, typer.Option("--format", "-f", help=f"{', '.join(FORMATS)}; default: jsonl.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write to this file, not to standard output.")] = None,
    to: Annotated[str | None, typer.Option("--to", help="Send the runs to a tracker instead: mlflow or wandb.")] = None,
    project: Annotated[
        str, typer.Option("--project", help="With --to: the experiment of MLflow, or the project of Weights & Biases.")
    ] = "benchyard",
    address: Annotated[
        str | None, typer.Option("--tracker-url", help="With --to: its address, if not as the tracker's variables say.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Write the results of runs: a row per item (jsonl, csv, parquet), JUnit XML, an Inspect log, or one JSON log.

    Several runs become one table (jsonl, csv, parquet), whose rows name their run and model. With --to, parameters, metrics
    and files go to a tracker; a second time, what is there is changed.
    """
    if to is not None:
        if form is not None or out is not None:
            raise BadUsage("--to sends to a tracker; leave out --format and --out.")
        _send(run_ids, to, project, address, as_json)
        return
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


def _send(run_ids: list[str], to: str, project: str, address: str | None, as_json: bool) -> None:
    if to not in TRACKERS:
        raise BadUsage(f"--to {clean(to)!r} is not one of {', '.join(TRACKERS)}.")
    send = import_module(TRACKERS[to]).send
    with command(as_json) as cmd, tempfile.TemporaryDirectory(prefix="benchyard-export-") as folder:
        runs = [cmd.client.find_run(run_id) for run_id in run_ids]
        tracked = [tracked_run(run, _files(cmd.client, run, Path(folder))) for run in runs]
        ids = send(tracked, project, address)
        sent = [{"run_id": run.run_id, "tracker": to, "id": name} for run, name in zip(tracked, ids, strict=True)]
        cmd.out.result({"sent": sent}, lambda: records_table(sent, {"Run": "run_id", "Tracker": "tracker", "There": "id"}))


def _files(client: Client, run: Json, folder: Path) -> tuple[Path, ...]:
    """The exports that go along."""
    run_id, files = str(run["id"]), []
    for form, name in FILES.items():
        if form == "inspect" and run["kind"] == "command":
            continue
        path = folder / f"{run_id}.{name}"
        with download(client, [run_id], form) as pieces, path.open("wb") as file:
            file.writelines(pieces)
        files.append(path)
    return tuple(files)


def download(client: Client, run_ids: list[str], form: str) -> AbstractContextManager[Iterator[bytes]]:
    """The pieces of an export of one or several runs."""
    if len(run_ids) == 1:
        return client.download(f"{run_path(run_ids[0])}/export", format=form)
    return client.download("/api/exports", run_id=run_ids, format=form)
