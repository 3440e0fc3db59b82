"""Commands about batches: batch run, list, show, end, retry, fetch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer
from rich.console import RenderableType

from orchestrator.cli.api.client import Client, Json
from orchestrator.cli.context import Command, command, command_group, now
from orchestrator.cli.errors import INTERRUPTED, RunCancelled, RunFailed
from orchestrator.cli.excluded import DEFAULT, MaxExcluded, MaxExcludedOption, raise_for_excluded, read_max_excluded
from orchestrator.cli.files.batch_config import read_config
from orchestrator.cli.files.batch_results import fetch as fetch_results
from orchestrator.cli.files.batch_results import fetch_whole
from orchestrator.cli.files.command_files import with_files
from orchestrator.cli.view.batches import Follower, batch_detail, counts_text, matrix_table, members
from orchestrator.cli.view.commands import compare_table
from orchestrator.cli.view.output import Columns, JsonFlag, status_text
from orchestrator.cli.view.text import clean, cost_of

batch_app = command_group("Many runs as one: list (the default), run, show, end, retry, fetch.")

BatchArgument = Annotated[str, typer.Argument(metavar="BATCH", help="A batch's id or external id.")]
OutOption = Annotated[Path, typer.Option("--out", "-o", help="Directory for results; each batch has its own below it.")]
RESULTS = Path("results")
NOT_OVER = ("running", "starting", "pending")
CHOICES = "[l]eave it running, [e]nd early, [c]ancel and clean up"


COLUMNS: Columns = {
    "Batch": "external_id",
    "Name": "name",
    "State": lambda batch: status_text(batch["state"]),
    "Runs": lambda batch: counts_text(batch["counts"]),
    "Items": lambda batch: f"{batch['progress']['done']}/{batch['progress']['total']}",
    "Cost": cost_of,
    "Id": "id",
}


@batch_app.command("run")
def run(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A JSON or YAML file; docs/examples has some.")],
    provider: Annotated[str | None, typer.Option(help="Only on these machines: local, or the provider of agents.")] = None,
    out: OutOption = RESULTS,
    max_excluded: MaxExcludedOption = DEFAULT,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait: print the id and return.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Create a batch, show its progress, and fetch its archives.

    Exit code: 0 all completed, 3 some runs or repeats of commands failed, or more items were left out than
    --max-excluded allows, 4 some were cancelled.
    """
    limit = read_max_excluded(max_excluded)
    body = with_files(read_config(config), config.parent) | ({"provider": provider} if provider is not None else {})
    with command(as_json) as cmd:
        batch = cmd.client.post("/api/batches", body)
        runs = f"{batch['runs']} {'run' if batch['runs'] == 1 else 'runs'}"
        cmd.out.note(f"Batch {batch['external_id']} ({batch['batch_id']}) has {runs}.")
        if detach:
            cmd.out.result(batch, str(batch["external_id"]))
            return
        _wait_and_fetch(cmd, batch, out, limit)


def _path(batch_id: str) -> str:
    return f"/api/batches/{quote(batch_id, safe='')}"


def _end(client: Client, batch_id: str, mode: str) -> Json:
    return client.post(f"{_path(batch_id)}/end", {"mode": mode})


def _wait_and_fetch(cmd: Command, created: Json, out: Path, limit: MaxExcluded) -> None:
    """Follows the batch to its end. After an interruption it asks a person what to do; without one, the batch continues."""
    follower = Follower(lambda: cmd.client.get(_path(created["batch_id"])), cmd.out, now=now)
    while True:
        try:
            batch = follower.until_over()
            break
        except KeyboardInterrupt:
            choice = _ask(cmd)
            if choice == "l":
                name = created["external_id"]
                cmd.out.warn(
                    f"Batch {name} continues: benchyard batch show {name}; to end it: benchyard batch end {name}; "
                    f"for its results: benchyard batch fetch {name}"
                )
                raise typer.Exit(INTERRUPTED) from None
            _end(cmd.client, created["batch_id"], "finish" if choice == "e" else "stop")
            if choice == "c":
                follower.until_over()
                raise RunCancelled(
                    f"Batch {created['external_id']} was cancelled; none of its containers is left."
                ) from None
            cmd.out.note("Runs that have not begun are dropped; the others finish.")
    _show_results(cmd, batch, out)
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


def _show_results(cmd: Command, batch: Json, out: Path) -> None:
    folder, _ = fetch_results(cmd.client, batch, out)
    name, comparison, report = _comparison(cmd.client, batch)
    cmd.out.result({"batch": batch, name: comparison, "results": str(folder)}, lambda: report)
    cmd.out.say(f"Results are in {clean(folder)}.")
    for status, error, word in (("failed", RunFailed, "failed"), ("cancelled", RunCancelled, "were cancelled")):
        if count := batch["counts"].get(status):
            raise error(f"{count} of {batch['runs']} runs {word}; benchyard batch show {batch['external_id']} says why.")
    groups = comparison.get("groups", ())
    if failed := sum(group["failed"] for group in groups):
        repeats = failed + sum(group["repeats"] for group in groups)
        raise RunFailed(f"{failed} of {repeats} repeats failed; benchyard command show RUN says how.")


def _comparison(client: Client, batch: Json) -> tuple[str, Json, RenderableType]:
    """Compares commands by their figures and models by their verdicts."""
    if any(member["kind"] == "command" for member in members(batch)):
        comparison = client.get("/api/commands/compare", batch=batch["id"])
        return "comparison", comparison, compare_table(comparison)
    matrix = client.get(f"{_path(batch['id'])}/matrix")
    return "matrix", matrix, matrix_table(matrix)


@batch_app.command("list")
def list_batches(
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=10_000, help="Maximum number of batches, newest first.")
    ] = 20,
    as_json: JsonFlag = False,
) -> None:
    """List batches, newest first."""
    with command(as_json) as cmd:
        batches = cmd.client.pages("/api/batches", limit=limit, page=100)
        cmd.out.items(batches, COLUMNS, right=("Items", "Cost"))


@batch_app.command("show")
def show(batch_id: BatchArgument, as_json: JsonFlag = False) -> None:
    """Show a batch by instance type with all its runs, and whether verdicts depend on the machine."""
    with command(as_json) as cmd:
        batch = cmd.client.get(_path(batch_id))
        name, comparison, report = _comparison(cmd.client, batch)
        cmd.out.result({**batch, name: comparison}, lambda: batch_detail(batch, now()))
        if not as_json:
            cmd.out.say()
            cmd.out.console.print(report)


@batch_app.command("end")
def end(
    batch_id: BatchArgument,
    stop: Annotated[bool, typer.Option("--stop", help="Also stop running runs; their finished items are kept.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """End a batch early: runs that have not started are dropped, the others finish."""
    with command(as_json) as cmd:
        batch = _end(cmd.client, batch_id, "stop" if stop else "finish")
        remaining = sum(batch["counts"].get(status, 0) for status in NOT_OVER)
        words = f"is {batch['state']}; {remaining} runs are not over yet" if remaining else f"is {batch['state']}"
        cmd.out.result(batch, f"Batch {batch['external_id']} {words}.")


@batch_app.command("retry")
def retry(
    batch_id: BatchArgument,
    cancelled: Annotated[bool, typer.Option("--cancelled", help="Also those that were cancelled.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Retry the failed runs of a batch; finished results and paid answers are kept."""
    with command(as_json) as cmd:
        retried = cmd.client.post(f"{_path(batch_id)}/retry", cancelled=cancelled)
        cmd.out.result(retried, "\n".join(retried["run_ids"]))


@batch_app.command("fetch")
def fetch(
    batch_id: BatchArgument,
    out: OutOption = RESULTS,
    whole: Annotated[bool, typer.Option("--whole", help="All runs in one file, batch.tar.gz.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Download the archives of all ended runs of a batch."""
    with command(as_json) as cmd:
        batch = cmd.client.get(_path(batch_id))
        if whole:
            file = fetch_whole(cmd.client, batch, out)
            folder, new = file.parent, [str(file)]
        else:
            folder, new = fetch_results(cmd.client, batch, out)
        remaining = sum(member["status"] in NOT_OVER for member in members(batch))
        answer = {"batch_id": batch["id"], "results": str(folder), "new": new, "not_over": remaining}
        sentence = f"{len(new)} new files in {clean(folder)}{f'; {remaining} runs are not over yet' if remaining else ''}."
        cmd.out.result(answer, sentence)
