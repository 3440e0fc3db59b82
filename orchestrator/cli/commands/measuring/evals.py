"""Commands about evals and traces: create a set, generate an eval, execute it, list contradictions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.cli.api.client import Client, Json, given
from orchestrator.cli.commands.measuring.jobs import Detach, raise_for_job, wait_for_job
from orchestrator.cli.context import command, command_group
from orchestrator.cli.errors import BadUsage, CliError
from orchestrator.cli.view.output import Columns, JsonFlag, facts
from orchestrator.cli.view.text import clean, interval, percent

SetArgument = Annotated[str, typer.Argument(metavar="SET", help="Name or id of an eval set.")]
EvalArgument = Annotated[str, typer.Argument(metavar="EVAL", help="Name (its newest version) or id of an eval.")]
Priority = Annotated[int, typer.Option(help="Higher starts earlier.")]
TypeOption = Annotated[str | None, typer.Option(help="Size of the container.")]

FORMATS = ("auto", "plain", "otel", "langfuse")
SHOWN_CHARS = 300
SHOWN_TRACE_CHARS = 80
SET_COLUMNS: Columns = {
    "Set": "id",
    "Name": "name",
    "Positive": "positive",
    "Negative": "negative",
    "Evals": "evals",
}
EVAL_COLUMNS: Columns = {
    "Eval": "id",
    "Name": "name",
    "Version": "version",
    "Model": lambda row: row["model"] or "by hand",
    "Accuracy": lambda row: f"{percent(row['accuracy']['estimate'])} ({interval(row['accuracy'])})",
    "Executed": "execution_count",
    "Contradictions": "contradiction_count",
}
CONTRADICTION_COLUMNS: Columns = {
    "Trace": "trace_id",
    "People": "rating",
    "Eval": lambda row: "positive" if row["passed"] else "negative",
    "Why": lambda row: str(row["reason"])[:SHOWN_CHARS],
    "Input": lambda row: str(row["input"])[:SHOWN_CHARS],
    "Output": lambda row: str(row["output"])[:SHOWN_CHARS],
}
TRACE_COLUMNS: Columns = {
    "Trace": "id",
    "Project": "project",
    "Input": lambda trace: _shortened(trace["input"]),
    "Output": lambda trace: _shortened(trace["output"]),
}

evals_app = command_group(
    "Evals, functions that a model writes to judge traces: "
    "list (the default), create, generate, execute, show, contradictions."
)
traces_app = typer.Typer(help="Traces of your own application.")


@evals_app.command("list")
def list_evals(
    sets: Annotated[bool, typer.Option("--sets", help="List eval sets instead.")] = False, as_json: JsonFlag = False
) -> None:
    """List evals, newest first, with their accuracy on held-out traces; or the sets they belong to."""
    path, columns = ("/api/eval-sets", SET_COLUMNS) if sets else ("/api/evals", EVAL_COLUMNS)
    right = ("Positive", "Negative", "Evals", "Executed", "Contradictions")
    with command(as_json) as cmd:
        rows = cmd.client.pages(path)
        cmd.out.items(rows, columns, right=right, value=rows)


@evals_app.command()
def create(
    name: Annotated[str, typer.Argument(help="The set's name.")],
    description: Annotated[str, typer.Option(help="What makes a trace good; the model gets this text.")] = "",
    project: Annotated[str | None, typer.Option(help="Only traces of this project.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Create an eval set: a question that people answer about traces."""
    with command(as_json) as cmd:
        body = given(name=name, description=description, project=project or None)
        eval_set = cmd.client.post("/api/eval-sets", body)
        cmd.out.result(eval_set, f"Eval set {clean(eval_set['name'])}: {eval_set['id']}")


@evals_app.command()
def generate(
    eval_set: SetArgument,
    model: Annotated[str, typer.Option("--model", "-m", help="Slug or id of the model that writes it.")],
    name: Annotated[str | None, typer.Option(help="Default: the set's name. An existing name gets a new version.")] = None,
    seed: Annotated[int, typer.Option(help="Chooses which labelled traces are held out.")] = 0,
    budget: Annotated[float | None, typer.Option(help="Maximum cost in US dollars.")] = None,
    priority: Priority = 0,
    instance_type: TypeOption = None,
    detach: Detach = False,
    as_json: JsonFlag = False,
) -> None:
    """Have a model write an eval from the labelled traces of a set, and show how good it is."""
    with command(as_json) as cmd:
        body = given(
            model_id=int(model) if model.isdecimal() else model,
            seed=seed,
            priority=priority,
            name=name,
            budget_usd=budget,
            instance_type=instance_type,
        )
        queued = cmd.client.post(f"/api/eval-sets/{_find_set(cmd.client, eval_set)['id']}/generate", body)
        if detach:
            cmd.out.result(queued, str(queued["job_id"]))
            return
        job = wait_for_job(cmd, queued["job_id"])
        if job["status"] == "completed":
            written = cmd.client.get(_eval_path(str(job["eval_id"])))
            cmd.out.result(written, lambda: _eval_detail(written))
        elif as_json:
            cmd.out.json(job)
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
    """Execute an eval on all traces of its set or on the given ones; only on new ones unless forced."""
    with command(as_json) as cmd:
        path = _eval_path(_find_eval(cmd.client, eval_name)["id"])
        body = given(force=force, priority=priority, trace_ids=trace or None, instance_type=instance_type or None)
        queued = cmd.client.post(f"{path}/execute", body)
        cmd.out.note(f"{queued['estimated_count']} traces are judged.")
        if queued["remaining"]:
            cmd.out.warn(f"{queued['remaining']} more did not fit into one job; execute again for them.")
        if detach:
            cmd.out.result(queued, str(queued["job_id"]))
            return
        job = wait_for_job(cmd, queued["job_id"])
        executed = cmd.client.get(path)
        cmd.out.result({"job": job, "eval": executed}, lambda: facts(_eval_facts(executed)))
        raise_for_job(job)


@evals_app.command()
def show(eval_name: EvalArgument, as_json: JsonFlag = False) -> None:
    """Show an eval: accuracy, counts, versions, and the model's code."""
    with command(as_json) as cmd:
        row = cmd.client.get(_eval_path(_find_eval(cmd.client, eval_name)["id"]))
        cmd.out.result(row, lambda: _eval_detail(row))


@evals_app.command()
def contradictions(
    eval_name: EvalArgument,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of traces.")] = 50,
    as_json: JsonFlag = False,
) -> None:
    """List traces on which an eval contradicts the label."""
    with command(as_json) as cmd:
        path = _eval_path(_find_eval(cmd.client, eval_name)["id"])
        rows = cmd.client.pages(f"{path}/contradictions", limit=limit)
        cmd.out.items(rows, CONTRADICTION_COLUMNS, value=rows)
        cmd.out.say(f"{len(rows)} contradictions." if rows else "Eval and people agree wherever both have judged.")


def _eval_path(eval_id: str) -> str:
    return f"/api/evals/{quote(eval_id, safe='')}"


def _find_set(client: Client, name: str) -> Json:
    """Finds a set by id, unique prefix of the id, or name."""
    return _find(name, client.pages("/api/eval-sets"), "eval set", "benchyard evals list --sets")


def _find_eval(client: Client, name: str) -> Json:
    """Finds an eval by id, unique prefix of the id, or name, which means the newest version."""
    newest: dict[tuple[str, str], Json] = {}
    rows = client.pages("/api/evals")
    for row in rows:
        newest.setdefault((row["eval_set_id"], row["name"]), row)
    named = [row for row in newest.values() if row["name"] == name]
    return _find(name, named or rows, "eval", "benchyard evals list")


def _find(name: str, rows: list[Json], kind: str, lister: str) -> Json:
    exact = [row for row in rows if name in (row["id"], row["name"])]
    matches = exact or [row for row in rows if len(name) >= 4 and str(row["id"]).startswith(name)]
    if not matches:
        raise CliError(f"There is no {kind} {clean(name)}; `{lister}` lists them.")
    if len(matches) > 1:
        some = ", ".join(clean(row["id"]) for row in matches[:3])
        raise CliError(f"{clean(name)} matches several {kind}s: {some}; give an id.")
    return matches[0]


def _eval_facts(row: Json) -> list[tuple[str, object]]:
    executed = f"{row['execution_count']} traces, {row['passed_count']} passed, {row['failure_count']} without a verdict"
    return [
        ("Eval", f"{clean(row['name'])} version {row['version']} ({row['id']})"),
        ("Model", row["model"] or "none: a person wrote it"),
        ("Accuracy", _accuracy(row["accuracy"])),
        ("On training traces", _accuracy(row["training_accuracy"])),
        ("Executed", executed),
        ("Contradictions", str(row["contradiction_count"])),
    ]


def _accuracy(accuracy: Json) -> str:
    return f"{percent(accuracy['estimate'])}   95 % interval {interval(accuracy)}   n = {accuracy['n']}"


def _eval_detail(row: Json) -> RenderableType:
    return Group(facts(_eval_facts(row)), Text(""), Text("\n".join(map(clean, str(row["code"]).splitlines()))))


@traces_app.callback(invoke_without_command=True)
def traces(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of traces.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """Traces: list (the default), import, sample."""
    if context.invoked_subcommand is not None:
        return
    with command(as_json) as cmd:
        rows = cmd.client.pages("/api/traces", limit=limit)
        cmd.out.items(rows, TRACE_COLUMNS, empty="No traces. Import some: benchyard traces import FILE", value=rows)


def _shortened(value: object) -> str:
    text = clean(value)
    return text if len(text) <= SHOWN_TRACE_CHARS else text[: SHOWN_TRACE_CHARS - 1] + "…"


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
    """Import the traces of a file. Unusable lines are skipped and reported."""
    if not file.is_file():
        raise BadUsage(f"There is no file {clean(file)}.")
    if form not in FORMATS:
        raise BadUsage(f"--format {clean(form)!r} is not one of {', '.join(FORMATS)}.")
    with command(as_json) as cmd:
        set_id = None if eval_set is None else str(_find_set(cmd.client, eval_set)["id"])
        report = cmd.client.upload("POST", "/api/traces", file, format=form, project=project or None, eval_set_id=set_id)
        cmd.out.result(
            report,
            lambda: facts(
                [
                    ("Imported", str(report["imported"])),
                    ("Unchanged", report["unchanged"] or ""),
                    ("Labelled", report["labelled"] or ""),
                    ("Left out", report["left_out"] or ""),
                ]
            ),
        )
        cmd.out.warn_some(
            [f"line {line['line']}: {clean(line['reason'])}" for line in report["left_out_lines"]], report["left_out"]
        )


@traces_app.command("sample")
def sample(
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=1_000_000, help="How many.")] = 60,
    seed: Annotated[int, typer.Option(help="Another seed makes other traces.")] = 0,
    labelled: Annotated[int | None, typer.Option(help="How many traces have a label. Default: all.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Print made-up, labelled traces of a shop's assistant as JSON lines, for a first try."""
    from orchestrator.traces.sample import sample_traces

    rows = list(sample_traces(count, seed))
    for row in rows[labelled if labelled is not None else count :]:
        row.pop("label")
    for value in [rows] if as_json else rows:
        sys.stdout.write(json.dumps(value) + "\n")
