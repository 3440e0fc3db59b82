"""The command `runs`: list runs, label, delete, pin and unpin them."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.cli.api.client import Client, Json, given, run_path
from orchestrator.cli.commands.measuring.runs import RunArgument
from orchestrator.cli.context import Command, command, now
from orchestrator.cli.errors import BadUsage, CliError
from orchestrator.cli.view.output import JsonFlag
from orchestrator.cli.view.runs import label_words, runs_table
from orchestrator.cli.view.text import clean, money, size

runs_app = typer.Typer(help="List runs; label, delete and pin them.")

ENDED = ("completed", "failed", "cancelled")
STATUSES = ("pending", "starting", "running", *ENDED)
SUMS = ("runs", "items", "calls", "events", "artefacts", "archives", "bytes", "cost_usd", "protected")
WORDS = {"items": "result", "calls": "model call", "artefacts": "artefact", "archives": "archive"}
ModelOption = Annotated[str | None, typer.Option("--model", "-m", help="Only those of this model.")]


@runs_app.callback(invoke_without_command=True)
def runs(
    context: typer.Context,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=100_000, help="Maximum number of runs, newest first.")
    ] = 20,
    status: Annotated[str | None, typer.Option(help=f"Only those that are: {', '.join(STATUSES)}.")] = None,
    model: ModelOption = None,
    tag: Annotated[str | None, typer.Option(help="Only those with this tag.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List runs, newest first (the default); label, delete, pin, unpin."""
    if context.invoked_subcommand is not None:
        return
    if status is not None and status not in STATUSES:
        raise BadUsage(f"There is no status {clean(status)!r}; it is one of {', '.join(STATUSES)}.")
    with command(as_json) as cmd:
        model_id = None if model is None else _model_id(cmd.client, model)
        runs = cmd.client.pages("/api/container-runs", limit=limit, status=status, model_id=model_id, tag=tag)
        cmd.out.result({"items": runs}, lambda: runs_table(runs, now()))


def _model_id(client: Client, model: str) -> int:
    for row in client.pages("/api/models", archived=True):
        if model in (row["slug"], str(row["id"])):
            return int(row["id"])
    raise CliError(f"There is no model {clean(model)!r}; `benchyard models` lists the models.")


@runs_app.command("delete")
def delete(
    run_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN...]", help="Ids, or unique beginnings of ids.")
    ] = None,
    older_than: Annotated[
        int | None,
        typer.Option("--older-than", metavar="DAYS", min=0, help="Those that ended more than this many days ago."),
    ] = None,
    status: Annotated[str | None, typer.Option(help=f"Only those that are: {', '.join(ENDED)}.")] = None,
    model: ModelOption = None,
    benchmark: Annotated[str | None, typer.Option("--benchmark", "-b", help="Only those on this benchmark.")] = None,
    batch: Annotated[str | None, typer.Option(help="Only those of this batch.")] = None,
    trigger: Annotated[str | None, typer.Option(help="Only those with this trigger: manual, schedule, retry ...")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Delete nothing: show what would be deleted.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Delete ended runs with everything they stored. Pinned runs, baselines and runs that schedules still need stay."""
    if status is not None and status not in ENDED:
        raise BadUsage(f"--status {clean(status)!r} is not one of {', '.join(ENDED)}; only ended runs can be deleted.")
    body = given(
        older_than_days=older_than, status=status, model=model, benchmark=benchmark, batch_id=batch, trigger=trigger
    )
    if not body and not run_ids:
        raise BadUsage("Name runs, or say which: --older-than DAYS, --status, --model, --benchmark, --batch, --trigger.")
    with command(as_json) as cmd:
        if run_ids and not body and len(run_ids) == 1:
            path = run_path(cmd.client.find_run_id(run_ids[0]))
            deletion = cmd.client.delete(path, dry_run=True)
            if not dry_run:
                _confirm(cmd, deletion, yes=yes)
                deletion = cmd.client.delete(path, dry_run=False)
        else:
            if run_ids:
                body["ids"] = [cmd.client.find_run_id(run_id) for run_id in run_ids]
            deletion = _delete_some(cmd.client, body, dry_run=True)
            if not dry_run and deletion["runs"]:
                _confirm(cmd, deletion, yes=yes)
                deletion = _delete_all(cmd.client, body)
        cmd.out.result(deletion, _deletion_report(deletion))


@runs_app.command("label")
def label(
    run_id: RunArgument,
    name: Annotated[str | None, typer.Option(help="What to call the run; an empty text takes the name away.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Add this tag; may be repeated.")] = None,
    untag: Annotated[list[str] | None, typer.Option(help="Take this tag away; may be repeated.")] = None,
    note: Annotated[str | None, typer.Option(help="What to know about the run; an empty text takes the note away.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Give a run a name, tags or a note, whatever its state."""
    if name is None and note is None and not tag and not untag:
        raise BadUsage("Say what to change: --name, --tag, --untag or --note.")
    with command(as_json) as cmd:
        run = cmd.client.find_run(run_id)
        body = given(name=name, note=note)
        if tag or untag:
            body["tags"] = [word for word in dict.fromkeys([*run["tags"], *(tag or ())]) if word not in (untag or ())]
        changed = cmd.client.patch(run_path(str(run["id"])), body)
        cmd.out.result(changed, f"Run {clean(str(changed['id']))}: {clean(label_words(changed) or 'no labels')}")


@runs_app.command("pin")
def pin(run_id: RunArgument, as_json: JsonFlag = False) -> None:
    """Pin a run: it cannot be deleted until it is unpinned."""
    _pin(run_id, pinned=True, as_json=as_json)


@runs_app.command("unpin")
def unpin(run_id: RunArgument, as_json: JsonFlag = False) -> None:
    """Allow a run to be deleted again."""
    _pin(run_id, pinned=False, as_json=as_json)


def _pin(beginning: str, *, pinned: bool, as_json: bool) -> None:
    with command(as_json) as cmd:
        run_id = cmd.client.find_run_id(beginning)
        cmd.client.post(f"{run_path(run_id)}/{'pin' if pinned else 'unpin'}")
        word = "pinned" if pinned else "no longer pinned"
        cmd.out.result({"run_id": run_id, "pinned": pinned}, f"Run {clean(run_id)} is {word}.")


def _confirm(cmd: Command, deletion: Json, *, yes: bool) -> None:
    if yes:
        return
    if not cmd.out.interactive:
        raise BadUsage(f"{_sentence(deletion, 'This would delete')} Use --yes to do it, or --dry-run to look only.")
    typer.confirm(f"{_sentence(deletion, 'This deletes')} Continue?", abort=True, err=True)


def _delete_some(client: Client, body: Json, *, dry_run: bool) -> Json:
    """Deletes matching runs; one request deletes a limited number, and `more` says whether to repeat it."""
    return client.post("/api/container-runs/delete", {**body, "dry_run": dry_run})


def _delete_all(client: Client, body: Json) -> Json:
    """Repeats the request until only protected runs match."""
    total: Json = {}
    while True:
        part = _delete_some(client, body, dry_run=False)
        protected = max(total.get("protected", 0), part["protected"])
        total = {**part, **{name: total.get(name, 0) + part[name] for name in SUMS}, "protected": protected}
        if not part["more"] or not part["runs"]:
            return total


def _sentence(deletion: Json, verb: str) -> str:
    runs = f"{deletion['runs']}{' or more' if deletion.get('more') else ''} run{'' if deletion['runs'] == 1 else 's'}"
    contents = ", ".join(_counted(deletion[name], word) for name, word in WORDS.items())
    return f"{verb} {runs} with {contents}, {size(deletion['bytes'])}."


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _deletion_report(deletion: Json) -> str:
    lines = [_sentence(deletion, "Would delete" if deletion["dry_run"] else "Deleted")]
    if deletion["cost_usd"]:
        lines.append(f"Their cost ({money(deletion['cost_usd'])}) stays in the totals.")
    if protected := deletion["protected"]:
        lines.append(f"{_counted(protected, 'matching run')} stay{'s' if protected == 1 else ''}:")
        lines += [f"  {clean(run['run_id'])}: {clean(run['why'])}" for run in deletion["protected_runs"]]
    return "\n".join(lines)
