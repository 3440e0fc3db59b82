"""Commands about evals: create a set, have one written, execute it, look at it, and where people disagree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.cli.api.evals import EvalClient
from orchestrator.cli.api.stream import follow
from orchestrator.cli.context import Command, command
from orchestrator.cli.errors import INTERRUPTED, RunCancelled, RunFailed
from orchestrator.cli.view.output import JsonFlag, facts, table
from orchestrator.cli.view.text import clean, interval, percent

evals_app = typer.Typer(help="Evals: functions that a model writes to judge traces.")

SetArgument = Annotated[str, typer.Argument(metavar="SET", help="Name or id of an eval set.")]
EvalArgument = Annotated[str, typer.Argument(metavar="EVAL", help="Name (its newest version) or id of an eval.")]
Detach = Annotated[bool, typer.Option("--detach", "-d", help="Print the job's id and return.")]
Priority = Annotated[int, typer.Option(help="Higher starts earlier.")]
TypeOption = Annotated[str | None, typer.Option(help="Size of the container.")]

Json = dict[str, Any]
SHOWN_CHARS = 300
SET_COLUMNS = ("Set", "Name", "Positive", "Negative", "Evals")
EVAL_COLUMNS = ("Eval", "Name", "Version", "Model", "Accuracy", "Executed", "Contradictions")


@contextmanager
def eval_command(as_json: bool) -> Iterator[tuple[Command, EvalClient]]:
    with command(as_json) as cmd, EvalClient(cmd.connection) as client:
        yield cmd, client


@evals_app.callback(invoke_without_command=True)
def evals(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Evals: list (the default), create, generate, execute, show, contradictions."""
    if context.invoked_subcommand is None:
        list_evals(as_json=as_json)


@evals_app.command("list")
def list_evals(
    sets: Annotated[bool, typer.Option("--sets", help="List eval sets instead.")] = False, as_json: JsonFlag = False
) -> None:
    """Evals, newest first, with their accuracy on held-out traces; or the sets they belong to."""
    with eval_command(as_json) as (cmd, client):
        if sets:
            found = client.eval_sets()
            rows = [(each["id"], each["name"], each["positive"], each["negative"], each["evals"]) for each in found]
            cmd.out.result(found, lambda: table(SET_COLUMNS, rows, right=SET_COLUMNS[2:]))
        else:
            made = client.evals()
            cmd.out.result(made, lambda: table(EVAL_COLUMNS, [_line(each) for each in made], right=EVAL_COLUMNS[5:]))


def _line(row: Json) -> tuple[object, ...]:
    accuracy = row["accuracy"]
    return (
        row["id"],
        row["name"],
        row["version"],
        row["model"] or "by hand",
        f"{percent(accuracy['estimate'])} ({interval(accuracy)})",
        row["execution_count"],
        row["contradiction_count"],
    )


@evals_app.command()
def create(
    name: Annotated[str, typer.Argument(help="The set's name.")],
    description: Annotated[str, typer.Option(help="What makes a trace good; the model is told this.")] = "",
    project: Annotated[str | None, typer.Option(help="Only traces of this project.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make an eval set: a question that people answer about traces."""
    with eval_command(as_json) as (cmd, client):
        body = {"name": name, "description": description} | ({"project": project} if project else {})
        made = client.create_eval_set(body)
        cmd.out.result(made, lambda: Text(f"Eval set {clean(made['name'])}: {made['id']}"))


@evals_app.command()
def generate(
    eval_set: SetArgument,
    model: Annotated[str, typer.Option("--model", "-m", help="Slug or id of the model that writes it.")],
    name: Annotated[str | None, typer.Option(help="Default: the set's name. The same again makes a version.")] = None,
    seed: Annotated[int, typer.Option(help="Chooses which labelled traces are held out.")] = 0,
    budget: Annotated[float | None, typer.Option(help="Most US dollars it may cost.")] = None,
    priority: Priority = 0,
    instance_type: TypeOption = None,
    detach: Detach = False,
    as_json: JsonFlag = False,
) -> None:
    """Have a model write an eval from the labelled traces of a set, and show how good it is."""
    with eval_command(as_json) as (cmd, client):
        found = client.find_set(eval_set)
        body: Json = {"model_id": int(model) if model.isdecimal() else model, "seed": seed, "priority": priority}
        more = {"name": name, "budget_usd": budget, "instance_type": instance_type}
        made = client.generate(found["id"], body | {key: value for key, value in more.items() if value is not None})
        if detach:
            cmd.out.result(made, lambda: Text(str(made["job_id"])))
            return
        job = wait_for_job(cmd, client, made["job_id"])
        if job["status"] == "completed":
            row = client.eval(str(job["eval_id"]))
            cmd.out.result(row, lambda: shown_eval(row))
        else:
            cmd.out.result(job, lambda: None)
        raise_for_job(job)


@evals_app.command()
def execute(
    eval_name: EvalArgument,
    trace: Annotated[list[str] | None, typer.Option("--trace", help="Only this trace; may be repeated.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Also traces that have a verdict.")] = False,
    priority: Priority = 0,
    instance_type: TypeOption = None,
    detach: Detach = False,
    as_json: JsonFlag = False,
) -> None:
    """Have an eval judge traces: all of its set, or those named; only new ones unless forced."""
    with eval_command(as_json) as (cmd, client):
        found = client.find_eval(eval_name)
        body: Json = {"force": force, "priority": priority}
        body |= {"trace_ids": trace} if trace else {}
        body |= {"instance_type": instance_type} if instance_type else {}
        made = client.execute(found["id"], body)
        cmd.out.note(f"{made['estimated_count']} traces are judged.")
        if made["remaining"]:
            cmd.out.warn(f"{made['remaining']} more did not fit into one job; execute again for them.")
        if detach:
            cmd.out.result(made, lambda: Text(str(made["job_id"])))
            return
        job = wait_for_job(cmd, client, made["job_id"])
        row = client.eval(found["id"])
        cmd.out.result({"job": job, "eval": row}, lambda: facts(_counts(row)))
        raise_for_job(job)


@evals_app.command()
def show(eval_name: EvalArgument, as_json: JsonFlag = False) -> None:
    """One eval: accuracy, counts, versions, what the model wrote."""
    with eval_command(as_json) as (cmd, client):
        row = client.eval(client.find_eval(eval_name)["id"])
        cmd.out.result(row, lambda: shown_eval(row))


@evals_app.command()
def contradictions(
    eval_name: EvalArgument,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = 50,
    as_json: JsonFlag = False,
) -> None:
    """Traces on which an eval says the opposite of what people think."""
    with eval_command(as_json) as (cmd, client):
        found = client.contradictions(client.find_eval(eval_name)["id"], limit)
        cmd.out.result(
            found, lambda: table(("Trace", "People", "Eval", "Why", "Input", "Output"), list(map(_against, found)))
        )
        cmd.out.say(f"{len(found)} contradictions." if found else "Eval and people agree wherever both have judged.")


def _against(row: Json) -> tuple[object, ...]:
    said = "positive" if row["passed"] else "negative"
    texts = (str(row[name])[:SHOWN_CHARS] for name in ("reason", "input", "output"))
    return (row["trace_id"], row["rating"], said, *texts)


def _counts(row: Json) -> list[tuple[str, object]]:
    return [
        ("Eval", f"{clean(row['name'])} version {row['version']} ({row['id']})"),
        ("Model", row["model"] or "none: a person wrote it"),
        ("Accuracy", _accuracy(row["accuracy"])),
        ("On training traces", _accuracy(row["training_accuracy"])),
        (
            "Executed",
            f"{row['execution_count']} traces, {row['passed_count']} passed, {row['failure_count']} without a verdict",
        ),
        ("Contradictions", str(row["contradiction_count"])),
    ]


def _accuracy(found: Json) -> str:
    return f"{percent(found['estimate'])}   95 % interval {interval(found)}   n = {found['n']}"


def shown_eval(row: Json) -> RenderableType:
    code = "\n".join(map(clean, str(row["code"]).splitlines()))
    return Group(facts(_counts(row)), Text(""), Text(code))


def wait_for_job(cmd: Command, client: EvalClient, job_id: str) -> Json:
    """Follow a job to its end, a line for each stage; Ctrl-C leaves it running."""
    last = ""
    try:
        for event in follow(client, job_id):
            data = event.data
            stage = clean(data.get("stage") or data.get("status") or "")
            detail = f", {clean(data['detail'])}" if data.get("detail") else ""
            if stage and stage + detail != last:
                last = stage + detail
                share = f" {data['percent']} %" if data.get("percent") is not None else ""
                cmd.out.note(f"{stage}{share}{detail}")
    except KeyboardInterrupt:
        cmd.out.warn(
            f"Job {job_id} goes on: `benchyard jobs show {job_id}` looks at it, `benchyard jobs cancel {job_id}` stops it."
        )
        raise typer.Exit(INTERRUPTED) from None
    return client.job(job_id)


def raise_for_job(job: Json) -> None:
    error = job.get("error") or {}
    why = f" ({clean(error.get('code', ''))}): {clean(error.get('message', ''))}" if error else "."
    if job["status"] == "failed":
        raise RunFailed(f"Job {job['id']} failed{why}")
    if job["status"] == "cancelled":
        raise RunCancelled(f"Job {job['id']} was cancelled.")
