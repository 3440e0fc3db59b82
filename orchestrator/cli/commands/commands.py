"""Commands about command benchmarks: command run, show, compare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.text import Text

from orchestrator.cli.commands.runs import RunArgument, raise_for, read_span, say_remarks, submit, wait
from orchestrator.cli.context import command, now
from orchestrator.cli.errors import BadUsage, RunFailed
from orchestrator.cli.files.command_files import file_body
from orchestrator.cli.view.commands import command_result, commands_table, compare_table
from orchestrator.cli.view.output import JsonFlag
from orchestrator.cli.view.text import clean
from orchestrator.commands.words import read_figure, read_variable

T = TypeVar("T")

command_app = typer.Typer()
MOST_LOOKED_AT = 1000

Figures = Annotated[
    list[str] | None,
    typer.Option(
        "--figure",
        metavar="NAME[:larger][=PATTERN]",
        help="A figure of the output: of its JSON line, of a place in one (`NAME=$.a[0].b`), or the group `value` of a "
        "pattern. May be repeated.",
    ),
]


@command_app.callback(invoke_without_command=True)
def command_group(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="At most so many, newest first.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """Commands of images, measured: list (the default), run, show, compare."""
    if context.invoked_subcommand is None:
        with command(as_json) as cmd:
            found = [each for each in cmd.client.runs(limit=MOST_LOOKED_AT) if each["kind"] == "command"][:limit]
            cmd.out.result({"items": found}, lambda: commands_table(found, now()))


@command_app.command("run")
def run(
    argv: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="The command with its arguments.")],
    image: Annotated[str, typer.Option("--image", help="An image that BENCHYARD_COMMAND_IMAGES allows.")],
    repeats: Annotated[int, typer.Option(min=1, help="How often it is run and measured.")] = 5,
    warmups: Annotated[int, typer.Option(min=0, help="How often before that, not counted.")] = 0,
    timeout: Annotated[str, typer.Option(metavar="TIME", help="Longest duration of one repeat: 90s, 15m.")] = "10m",
    env: Annotated[list[str] | None, typer.Option("--env", "-e", metavar="NAME=VALUE", help="No secrets.")] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(
            "--file",
            metavar="PATH",
            help="A file to take along; the command finds it in its working directory. May be repeated.",
        ),
    ] = None,
    workdir: Annotated[str | None, typer.Option(help="Where it runs; default: the image's directory.")] = None,
    name: Annotated[str | None, typer.Option(help="Of the benchmark; default: the program's.")] = None,
    figure: Figures = None,
    instance_type: Annotated[str | None, typer.Option(help="Size of the container; `benchyard fleet` lists them.")] = None,
    provider: Annotated[str | None, typer.Option(help="Only on these machines: local, or the provider of agents.")] = None,
    deadline: Annotated[str | None, typer.Option(metavar="TIME", help="Longest duration of the run.")] = None,
    priority: Annotated[int, typer.Option(help="Higher starts earlier.")] = 0,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait: print the id and return.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Run a command again and again in one container; its time, memory and own figures with 95 % intervals.

    Exit code: 0 all repeats passed, 3 the run or a repeat failed, 4 cancelled.
    """
    task = {
        "image": image,
        "command": argv,
        "repeats": repeats,
        "warmups": warmups,
        "timeout_s": float(read_span(timeout, "--timeout")),
        "env": dict(_read("--env", each, read_variable) for each in env or ()),
        "workdir": workdir,
        "name": name,
        "figures": [_read("--figure", each, read_figure) for each in figure or ()],
        "files": [file_body(each, Path()) for each in file or ()] or None,
    }
    body = {
        "kind": "command",
        "command": {key: value for key, value in task.items() if value is not None},
        "instance_type": instance_type,
        "provider": provider,
        "deadline_s": None if deadline is None else read_span(deadline),
        "priority": priority,
    }
    with command(as_json) as cmd:
        run_ids = submit(cmd, [{key: value for key, value in body.items() if value is not None}])
        if detach:
            cmd.out.result({"runs": [{"id": run_ids[0]}]}, lambda: Text(run_ids[0]))
            return
        finished = wait(cmd, run_ids)
        found = cmd.client.command(run_ids[0])
        cmd.out.result(found, lambda: command_result(found))
        say_remarks(cmd, finished)
        raise_for(finished)
        if failed := sum(each["outcome"] != "passed" for each in found["repeats"]):
            raise RunFailed(f"{failed} of {repeats} repeats failed; benchyard command show {run_ids[0]} says how.")


@command_app.command("show")
def show(run_id: RunArgument, as_json: JsonFlag = False) -> None:
    """Show what a command came to: figures over its repeats, and repeats that failed."""
    with command(as_json) as cmd:
        found = cmd.client.command(str(cmd.client.find_run(run_id)["id"]))
        cmd.out.result(found, lambda: command_result(found))


@command_app.command("compare")
def compare(
    run_ids: Annotated[list[str] | None, typer.Argument(metavar="RUN RUN...", help="Each against the first.")] = None,
    batch: Annotated[str | None, typer.Option(help="A batch: images and instance types against each other.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare commands: the ratio of each figure to that of the first, with an interval and a verdict."""
    if bool(run_ids) == (batch is not None):
        raise BadUsage("Name two runs or more, or a batch with --batch.")
    with command(as_json) as cmd:
        chosen = [str(cmd.client.find_run(each)["id"]) for each in run_ids or ()]
        found = cmd.client.compare_commands(chosen, batch)
        cmd.out.result(found, lambda: compare_table(found))


def _read(option: str, text: str, read: Callable[[str], T]) -> T:
    try:
        return read(text)
    except ValueError as error:
        raise BadUsage(f"{option} {clean(text)!r} {error}.") from None
