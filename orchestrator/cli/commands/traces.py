"""Commands about traces: list, import, sample."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from orchestrator.cli.commands.evals import eval_command
from orchestrator.cli.errors import BadUsage
from orchestrator.cli.view.output import JsonFlag, facts, table
from orchestrator.cli.view.text import clean

traces_app = typer.Typer(help="Traces of your own application.", no_args_is_help=False)
FORMATS = ("auto", "plain", "otel", "langfuse")
SHOWN = 10
SHORT = 80


@traces_app.callback(invoke_without_command=True)
def traces(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """Traces: list them (the default), import, sample."""
    if context.invoked_subcommand is not None:
        return
    with eval_command(as_json) as (cmd, client):
        found = client.traces(limit=limit)
        rows = [(each["id"], each["project"], _short(each["input"]), _short(each["output"])) for each in found]
        empty = Text("No traces. Import some: benchyard traces import FILE")
        cmd.out.result(found, lambda: table(("Trace", "Project", "Input", "Output"), rows) if rows else empty)


def _short(value: object) -> str:
    text = clean(value)
    return text if len(text) <= SHORT else text[: SHORT - 1] + "…"


@traces_app.command("import")
def import_traces(
    file: Annotated[Path, typer.Argument(help="JSON lines, OTLP JSON or a Langfuse export; also gzip.")],
    eval_set: Annotated[
        str | None, typer.Option("--eval-set", help="Labels in the file become feedback in this set: name or id.")
    ] = None,
    project: Annotated[str | None, typer.Option(help="The application that the traces are from.")] = None,
    form: Annotated[str, typer.Option("--format", help="auto, plain, otel or langfuse.")] = "auto",
    as_json: JsonFlag = False,
) -> None:
    """Store the traces of a file. What cannot be used is left out and named."""
    if not file.is_file():
        raise BadUsage(f"There is no file {clean(file)}.")
    if form not in FORMATS:
        raise BadUsage(f"--format {clean(form)!r} is not one of {', '.join(FORMATS)}.")
    with eval_command(as_json) as (cmd, client):
        query = {"format": form} | ({"project": project} if project else {})
        if eval_set is not None:
            query["eval_set_id"] = str(client.find_set(eval_set)["id"])
        done = client.import_traces(file, query)
        cmd.out.result(
            done,
            lambda: facts(
                [
                    ("Imported", str(done["imported"])),
                    ("There already", done["unchanged"] or ""),
                    ("Labelled", done["labelled"] or ""),
                    ("Left out", done["left_out"] or ""),
                ]
            ),
        )
        for each in done["left_out_lines"][:SHOWN]:
            cmd.out.warn(f"line {each['line']}: {clean(each['reason'])}")
        if done["left_out"] > SHOWN:
            cmd.out.warn(f"... and {done['left_out'] - SHOWN} more left out; --json lists them.")


@traces_app.command("sample")
def sample(
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=1_000_000, help="How many.")] = 60,
    seed: Annotated[int, typer.Option(help="Other ones.")] = 0,
    labelled: Annotated[int | None, typer.Option(help="Only the first so many have a label. Default: all.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Print made-up traces of a shop's assistant with labels, JSON lines, for a first try."""
    import json

    from orchestrator.traces.sample import sample_traces

    rows = list(sample_traces(count, seed))
    for row in rows[labelled if labelled is not None else count :]:
        row.pop("label")
    if as_json:
        sys.stdout.write(json.dumps(rows) + "\n")
        return
    for row in rows:
        sys.stdout.write(json.dumps(row) + "\n")
