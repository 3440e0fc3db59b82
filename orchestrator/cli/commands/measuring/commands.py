"""Commands about command benchmarks: command run, show, compare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from orchestrator.cli.api.client import given
from orchestrator.cli.commands.measuring.runs import RunArgument, raise_for, read_span, say_remarks, submit, wait
from orchestrator.cli.context import command, now
from orchestrator.cli.errors import BadUsage, RunFailed
from orchestrator.cli.files.command_files import file_body
from orchestrator.cli.view.commands import command_result, commands_table, compare_table
from orchestrator.cli.view.output import JsonFlag
from orchestrator.cli.view.text import clean
from orchestrator.commands.words import read_figure, read_variable

T = TypeVar("T")

command_app = typer.Typer()
RUNS_SEARCHED = 1000

Figures = Annotated[
    list[str] | None,
    typer.Option(
        "--figure",
        metavar="NAME[:larger][=PATTERN]",
        help="A figure in the output: in its JSON line, at a path in one (`NAME=$.a[0].b`), or the group `value` of a "
        "pattern. May be repeated.",
    ),
]


@command_app.callback(invoke_without_command=True)
def command_group(
    context: typer.Context,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=10_000, help="Maximum number of commands, newest first.")
    ] = 20,
    as_json: JsonFlag = False,
) -> None:
    """Command benchmarks: list (the default), run, show, compare."""
    if context.invoked_subcommand is None:
        with command(as_json) as cmd:
            runs = cmd.client.pages("/api/container-runs", limit=RUNS_SEARCHED)
            runs = [run for run in runs if run["kind"] == "command"][:limit]
            cmd.out.result({"items": runs}, lambda: commands_table(runs, now()))


@command_app.command("run")
def run(
    argv: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="The command with its arguments.")],
    image: Annotated[str, typer.Option("--image", help="An image that BENCHYARD_COMMAND_IMAGES allows.")],
    repeats: Annotated[int, typer.Option(min=1, help="How often it is run and measured.")] = 5,
    warmups: Annotated[int, typer.Option(min=0, help="Runs before that, not measured.")] = 0,
    timeout: Annotated[str, typer.Option(metavar="TIME", help="Longest duration of one repeat: 90s, 15m.")] = "10m",
    env: Annotated[list[str] | None, typer.Option("--env", "-e", metavar="NAME=VALUE", help="No secrets.")] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(
            "--file",
            metavar="PATH",
            help="A file to send along; the command finds it in its working directory. May be repeated.",
        ),
    ] = None,
    workdir: Annotated[str | None, typer.Option(help="Where it runs; default: the image's directory.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the benchmark; default: the program's name.")] = None,
    figure: Figures = None,
    instance_type: Annotated[str | None, typer.Option(help="Size of the container; `benchyard fleet` lists them.")] = None,
    provider: Annotated[str | None, typer.Option(help="Only on these machines: local, or the provider of agents.")] = None,
    deadline: Annotated[str | None, typer.Option(metavar="TIME", help="Longest duration of the run.")] = None,
    priority: Annotated[int, typer.Option(help="Higher starts earlier.")] = 0,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait: print the id and return.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Run a command repeatedly in one container and show its time, memory and own figures with 95 % intervals.

    Exit code: 0 all repeats passed, 3 the run or a repeat failed, 4 cancelled.
    """
    task = given(
        image=image,
        command=argv,
        repeats=repeats,
        warmups=warmups,
        timeout_s=float(read_span(timeout, "--timeout")),
        env=dict(_read("--env", text, read_variable) for text in env or ()),
        workdir=workdir,
        name=name,
        figures=[_read("--figure", text, read_figure) for text in figure or ()],
        files=[file_body(path, Path()) for path in file or ()] or None,
    )
    body = given(
        kind="command",
        command=task,
        instance_type=instance_type,
        provider=provider,
        deadline_s=None if deadline is None else read_span(deadline),
        priority=priority,
    )
    with command(as_json) as cmd:
        (run_id,) = submit(cmd, [body])
        if detach:
            cmd.out.result({"runs": [{"id": run_id}]}, run_id)
            return
        finished = wait(cmd, [run_id])
        result = cmd.client.get(f"/api/commands/{run_id}")
        cmd.out.result(result, lambda: command_result(result))
        say_remarks(cmd, finished)
        raise_for(finished)
        if failed := sum(repeat["outcome"] != "passed" for repeat in result["repeats"]):
            raise RunFailed(f"{failed} of {repeats} repeats failed; benchyard command show {run_id} says how.")


@command_app.command("show")
def show(run_id: RunArgument, as_json: JsonFlag = False) -> None:
    """Show the result of a command: figures over its repeats, and failed repeats."""
    with command(as_json) as cmd:
        result = cmd.client.get(f"/api/commands/{cmd.client.find_run_id(run_id)}")
        cmd.out.result(result, lambda: command_result(result))


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
        full_ids = [cmd.client.find_run_id(run_id) for run_id in run_ids or ()]
        comparison = cmd.client.get("/api/commands/compare", run=full_ids, batch=batch)
        cmd.out.result(comparison, lambda: compare_table(comparison))


def _read(option: str, text: str, read: Callable[[str], T]) -> T:
    try:
        return read(text)
    except ValueError as error:
        raise BadUsage(f"{option} {clean(text)!r} {error}.") from None
