"""The command `runs` with what is done to many runs at once: delete, pin, unpin."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from orchestrator.cli.api.client import Client
from orchestrator.cli.commands import runs as run_commands
from orchestrator.cli.commands.runs import STATUSES
from orchestrator.cli.context import Command, command
from orchestrator.cli.errors import BadUsage
from orchestrator.cli.view.output import JsonFlag
from orchestrator.cli.view.text import clean, money, size

runs_app = typer.Typer(help="List runs; delete and pin them.", no_args_is_help=False)

SUMS = ("runs", "items", "calls", "events", "artefacts", "archives", "bytes", "cost_usd", "protected")
WORDS = {"items": "result", "calls": "model call", "artefacts": "artefact", "archives": "archive"}
ENDED = tuple(each for each in STATUSES if each in ("completed", "failed", "cancelled"))


@runs_app.callback(invoke_without_command=True)
def runs(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most so many, newest first.")] = 20,
    status: Annotated[str | None, typer.Option(help=f"Only those that are: {', '.join(STATUSES)}.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Only those of this model.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List runs, newest first (the default); delete, pin, unpin."""
    if context.invoked_subcommand is None:
        run_commands.runs(limit, status, model, as_json)


@runs_app.command("delete")
def delete(
    run_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN...]", help="Ids, or unique beginnings of ids.")
    ] = None,
    older_than: Annotated[
        int | None, typer.Option("--older-than", metavar="DAYS", min=0, help="Those that ended more than so many days ago.")
    ] = None,
    status: Annotated[str | None, typer.Option(help=f"Only those that are: {', '.join(ENDED)}.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Only those of this model.")] = None,
    benchmark: Annotated[str | None, typer.Option("--benchmark", "-b", help="Only those on this benchmark.")] = None,
    batch: Annotated[str | None, typer.Option(help="Only those of this batch.")] = None,
    trigger: Annotated[str | None, typer.Option(help="Only those started so: manual, schedule, retry ...")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Delete nothing: say what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Delete ended runs with all they stored. Pinned runs, baselines and what schedules still need stay."""
    if status is not None and status not in ENDED:
        raise BadUsage(f"--status {clean(status)!r} is not one of {', '.join(ENDED)}; only ended runs can be deleted.")
    given = {"older_than_days": older_than, "status": status, "model": model, "benchmark": benchmark}
    body: dict[str, Any] = {
        name: value for name, value in {**given, "batch_id": batch, "trigger": trigger}.items() if value is not None
    }
    if not body and not run_ids:
        raise BadUsage("Name runs, or say which: --older-than DAYS, --status, --model, --benchmark, --batch, --trigger.")
    with command(as_json) as cmd:
        if run_ids and not body and len(run_ids) == 1:
            _delete_one(cmd, str(cmd.client.find_run(run_ids[0])["id"]), dry_run=dry_run, yes=yes)
            return
        if run_ids:
            body["ids"] = [str(cmd.client.find_run(each)["id"]) for each in run_ids]
        found = cmd.client.delete_runs({**body, "dry_run": True})
        if not dry_run and found["runs"]:
            _ask(cmd, found, yes=yes)
            found = _all(cmd.client, body)
        cmd.out.result(found, lambda: _shown(found))


@runs_app.command("pin")
def pin(run_id: run_commands.RunArgument, as_json: JsonFlag = False) -> None:
    """Keep a run: it cannot be deleted until it is unpinned."""
    _pin(run_id, pinned=True, as_json=as_json)


@runs_app.command("unpin")
def unpin(run_id: run_commands.RunArgument, as_json: JsonFlag = False) -> None:
    """Let a run be deleted again."""
    _pin(run_id, pinned=False, as_json=as_json)


def _pin(run_id: str, *, pinned: bool, as_json: bool) -> None:
    with command(as_json) as cmd:
        found = str(cmd.client.find_run(run_id)["id"])
        cmd.client.pin_run(found, pinned=pinned)
        word = "pinned" if pinned else "no longer pinned"
        cmd.out.result({"run_id": found, "pinned": pinned}, lambda: Text(f"Run {clean(found)} is {word}."))


def _delete_one(cmd: Command, run_id: str, *, dry_run: bool, yes: bool) -> None:
    found = cmd.client.delete_run(run_id, dry_run=True)
    if not dry_run:
        _ask(cmd, found, yes=yes)
        found = cmd.client.delete_run(run_id, dry_run=False)
    cmd.out.result(found, lambda: _shown(found))


def _ask(cmd: Command, found: dict[str, Any], *, yes: bool) -> None:
    if yes:
        return
    if not cmd.out.interactive:
        raise BadUsage(f"{_sentence(found, 'This would delete')} Say --yes to do it, or --dry-run to look only.")
    typer.confirm(f"{_sentence(found, 'This deletes')} Go on?", abort=True, err=True)


def _all(client: Client, body: dict[str, Any]) -> dict[str, Any]:
    """One request after another, until nothing that matches is left but what is protected."""
    total: dict[str, Any] = {}
    while True:
        part = client.delete_runs({**body, "dry_run": False})
        kept = max(total.get("protected", 0), part["protected"])
        sums = {name: total.get(name, 0) + part[name] for name in SUMS}
        total = {**part, **sums, "protected": kept}
        if not part["more"] or not part["runs"]:
            return total


def _sentence(found: dict[str, Any], verb: str) -> str:
    runs = found["runs"]
    more = " or more" if found.get("more") else ""
    return (
        f"{verb} {runs}{more} run{'' if runs == 1 else 's'} with "
        + ", ".join(_counted(found[name], word) for name, word in WORDS.items())
        + f", {_bytes(found['bytes'])}."
    )


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _bytes(count: int) -> str:
    return size(count) if count >= 1 << 20 else f"{count / 1024:.0f} KiB"


def _shown(found: dict[str, Any]) -> Text:
    lines = [_sentence(found, "Would delete" if found["dry_run"] else "Deleted")]
    if found["cost_usd"]:
        lines.append(f"What they cost ({money(found['cost_usd'])}) stays counted.")
    if found["protected"]:
        lines.append(f"{_counted(found['protected'], 'matching run')} stay{'s' if found['protected'] == 1 else ''}:")
        lines += [f"  {clean(each['run_id'])}: {clean(each['why'])}" for each in found["protected_runs"]]
    return Text("\n".join(lines))
