"""Commands about batches: batch run, list, show, end, retry, fetch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from orchestrator.cli.context import Command, command, now
from orchestrator.cli.errors import INTERRUPTED, RunCancelled, RunFailed
from orchestrator.cli.excluded import DEFAULT, MaxExcluded, MaxExcludedOption, raise_for_excluded, read_max_excluded
from orchestrator.cli.files.batch_config import read_config
from orchestrator.cli.files.batch_results import fetch as fetch_results
from orchestrator.cli.files.batch_results import fetch_whole
from orchestrator.cli.files.command_files import with_files
from orchestrator.cli.view.batches import Follower, batch_detail, counts_text, matrix_table, members
from orchestrator.cli.view.commands import compare_table
from orchestrator.cli.view.output import JsonFlag, status_text, table
from orchestrator.cli.view.text import clean, cost_of

batch_app = typer.Typer()

BatchArgument = Annotated[str, typer.Argument(metavar="BATCH", help="A batch's id or external id.")]
OutOption = Annotated[Path, typer.Option("--out", "-o", help="Results go into a directory of this one.")]
RESULTS = Path("results")
CHOICES = "[l]eave it running, [e]nd early, [c]ancel and clean up"


@batch_app.callback(invoke_without_command=True)
def batch(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Many runs as one: list (the default), run, show, end, retry, fetch."""
    if context.invoked_subcommand is None:
        list_batches(as_json=as_json)


@batch_app.command("run")
def run(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A JSON or YAML file; docs/examples has some.")],
    provider: Annotated[str | None, typer.Option(help="Only on these machines: local, or the provider of agents.")] = None,
    out: OutOption = RESULTS,
    max_excluded: MaxExcludedOption = DEFAULT,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait: print the id and return.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Make a batch, show how it goes on, and fetch its archives.

    Exit code: 0 all completed, 3 some runs or repeats of commands failed, or more items were left out than
    --max-excluded allows, 4 some were cancelled.
    """
    limit = read_max_excluded(max_excluded)
    body = with_files(read_config(config), config.parent) | ({"provider": provider} if provider is not None else {})
    with command(as_json) as cmd:
        made = cmd.client.create_batch(body)
        cmd.out.note(
            f"Batch {made['external_id']} ({made['batch_id']}) has {made['runs']} {'run' if made['runs'] == 1 else 'runs'}."
        )
        if detach:
            cmd.out.result(made, lambda: Text(str(made["external_id"])))
            return
        _see_through(cmd, made, out, limit)


def _see_through(cmd: Command, made: dict[str, Any], out: Path, limit: MaxExcluded) -> None:
    """Follow the batch to its end. Interrupted, people are asked what shall become of it; programs leave it running."""
    follower = Follower(cmd.client, cmd.out, made["batch_id"], now=now)
    while True:
        try:
            batch = follower.until_over()
            break
        except KeyboardInterrupt:
            choice = _ask(cmd)
            if choice == "l":
                _say_that_it_goes_on(cmd, made)
                raise typer.Exit(INTERRUPTED) from None
            cmd.client.end_batch(made["batch_id"], "finish" if choice == "e" else "stop")
            if choice == "c":
                follower.until_over()
                raise RunCancelled(f"Batch {made['external_id']} was cancelled; none of its containers is left.") from None
            cmd.out.note("What has not begun is dropped; what runs finishes.")
    _deliver(cmd, batch, out)
    raise_for_excluded(members(batch), limit)


def _ask(cmd: Command) -> str:
    if not (cmd.out.interactive and sys.stdin.isatty()):
        return "l"
    cmd.out.say()
    try:
        while True:
            word = str(typer.prompt(f"Interrupted. {CHOICES}", default="l", show_default=False)).strip().lower()[:1]
            if word in ("l", "e", "c"):
                return word
    except (KeyboardInterrupt, typer.Abort, EOFError):
        return "l"


def _say_that_it_goes_on(cmd: Command, made: dict[str, Any]) -> None:
    name = made["external_id"]
    cmd.out.warn(
        f"Batch {name} goes on: benchyard batch show {name}; to end it: benchyard batch end {name}; "
        f"for its results: benchyard batch fetch {name}"
    )


def _deliver(cmd: Command, batch: dict[str, Any], out: Path) -> None:
    folder, _ = fetch_results(cmd.client, batch, out)
    name, found, shown = _came_to(cmd, batch)
    cmd.out.result({"batch": batch, name: found, "results": str(folder)}, lambda: shown)
    cmd.out.say(f"Results are in {clean(folder)}.")
    for status, error, word in (("failed", RunFailed, "failed"), ("cancelled", RunCancelled, "were cancelled")):
        if count := batch["counts"].get(status):
            raise error(f"{count} of {batch['runs']} runs {word}; benchyard batch show {batch['external_id']} says why.")
    groups = found.get("groups", ())
    if failed := sum(group["failed"] for group in groups):
        repeats = failed + sum(group["repeats"] for group in groups)
        raise RunFailed(f"{failed} of {repeats} repeats failed; benchyard command show RUN says how.")


def _came_to(cmd: Command, batch: dict[str, Any]) -> tuple[str, dict[str, Any], RenderableType]:
    """Commands are compared by their figures, models by their verdicts."""
    if any(each["kind"] == "command" for each in members(batch)):
        found = cmd.client.compare_commands([], batch["id"])
        return "comparison", found, compare_table(found)
    matrix = cmd.client.matrix(batch["id"])
    return "matrix", matrix, matrix_table(matrix)


@batch_app.command("list")
def list_batches(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="At most so many, newest first.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """List batches, newest first."""
    with command(as_json) as cmd:
        found = cmd.client.batches(limit=limit)
        rows = [
            (
                each["external_id"],
                each["name"],
                status_text(each["state"]),
                counts_text(each["counts"]),
                f"{each['progress']['done']}/{each['progress']['total']}",
                cost_of(each),
                each["id"],
            )
            for each in found
        ]
        columns = ("Batch", "Name", "State", "Runs", "Items", "Cost", "Id")
        cmd.out.result({"items": found}, lambda: table(columns, rows, right=("Items", "Cost")))


@batch_app.command("show")
def show(batch_id: BatchArgument, as_json: JsonFlag = False) -> None:
    """Show a batch by instance type with all its runs, and whether verdicts depend on the machine."""
    with command(as_json) as cmd:
        batch = cmd.client.batch(batch_id)
        word, found, shown = _came_to(cmd, batch)
        cmd.out.result({**batch, word: found}, lambda: batch_detail(batch, now()))
        if not as_json:
            cmd.out.say()
            cmd.out.console.print(shown)


@batch_app.command("end")
def end(
    batch_id: BatchArgument,
    stop: Annotated[bool, typer.Option("--stop", help="Stop what runs, too; its finished items are kept.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """End a batch early: what has not begun is dropped, what runs finishes."""
    with command(as_json) as cmd:
        batch = cmd.client.end_batch(batch_id, "stop" if stop else "finish")
        left = sum(batch["counts"].get(each, 0) for each in ("running", "starting", "pending"))
        words = f"is {batch['state']}; {left} runs are not over yet" if left else f"is {batch['state']}"
        cmd.out.result(batch, lambda: Text(f"Batch {batch['external_id']} {words}."))


@batch_app.command("retry")
def retry(
    batch_id: BatchArgument,
    cancelled: Annotated[bool, typer.Option("--cancelled", help="Also those that were cancelled.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Take the failed runs of a batch up again; finished results and paid answers are kept."""
    with command(as_json) as cmd:
        made = cmd.client.retry_batch(batch_id, cancelled=cancelled)
        cmd.out.result(made, lambda: Text("\n".join(made["run_ids"])))


@batch_app.command("fetch")
def fetch(
    batch_id: BatchArgument,
    out: OutOption = RESULTS,
    whole: Annotated[bool, typer.Option("--whole", help="All runs in one file, batch.tar.gz.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Fetch the archives of all runs of a batch that are over."""
    with command(as_json) as cmd:
        batch = cmd.client.batch(batch_id)
        if whole:
            file = fetch_whole(cmd.client, batch, out)
            folder, new = file.parent, [str(file)]
        else:
            folder, new = fetch_results(cmd.client, batch, out)
        left = sum(each["status"] in ("running", "starting", "pending") for each in members(batch))
        answer = {"batch_id": batch["id"], "results": str(folder), "new": new, "not_over": left}
        said = f"{len(new)} new files in {clean(folder)}{f'; {left} runs are not over yet' if left else ''}."
        cmd.out.result(answer, lambda: Text(said))
