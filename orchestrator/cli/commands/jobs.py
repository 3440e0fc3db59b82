"""Commands about jobs of every kind: list, show, cancel, retry, dismiss."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from orchestrator.cli.commands.evals import Detach, eval_command, raise_for_job, wait_for_job
from orchestrator.cli.view.output import JsonFlag, facts, status_text, table
from orchestrator.cli.view.text import clean

jobs_app = typer.Typer(help="Jobs of every kind: list (the default), show, cancel, retry, dismiss.")
JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="A job's id.")]


@jobs_app.callback(invoke_without_command=True)
def jobs(
    context: typer.Context,
    kind: Annotated[
        str | None, typer.Option("--type", help="benchmark, grade, eval_generate, eval_execute, command or dataset_build.")
    ] = None,
    status: Annotated[str | None, typer.Option(help="pending, starting, running, completed, failed, cancelled.")] = None,
    dead_letter: Annotated[
        bool, typer.Option("--dead-letter", help="Only those given up after 3 attempts and not settled.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """Jobs of all kinds, newest first; or show, cancel, retry, dismiss one."""
    if context.invoked_subcommand is not None:
        return
    with eval_command(as_json) as (cmd, client):
        query = {key: value for key, value in (("type", kind), ("status", status)) if value}
        found = client.jobs(limit=limit, query=query | ({"dead_letter": "true"} if dead_letter else {}))
        rows = [
            (
                each["id"],
                each["type"],
                status_text(each["status"]),
                each["stage"] or "",
                f"{each['percent']} %",
                each["attempt"],
                (each["error"] or {}).get("code", ""),
            )
            for each in found
        ]
        columns = ("Job", "Type", "Status", "Stage", "Done", "Attempt", "Error")
        cmd.out.result(found, lambda: table(columns, rows, right=("Done", "Attempt")) if rows else Text("No jobs."))


@jobs_app.command()
def show(job: JobArgument, as_json: JsonFlag = False) -> None:
    """One job: how far it is, or how it ended."""
    with eval_command(as_json) as (cmd, client):
        found = client.job(job)
        cmd.out.result(found, lambda: facts(_facts(found)))


@jobs_app.command()
def cancel(job: JobArgument, as_json: JsonFlag = False) -> None:
    """Stop a job; its container is stopped with it."""
    with eval_command(as_json) as (cmd, client):
        found = client.cancel_job(job)
        done = found["status"] == "cancelled"
        cmd.out.result(found, lambda: Text(f"Job {found['id']} {'was' if done else 'is being'} cancelled."))


@jobs_app.command()
def retry(job: JobArgument, detach: Detach = False, as_json: JsonFlag = False) -> None:
    """A new job for what an ended one left undone."""
    with eval_command(as_json) as (cmd, client):
        made = client.retry_job(job)
        if detach:
            cmd.out.result(made, lambda: Text(str(made["job_id"])))
            return
        ended = wait_for_job(cmd, client, made["job_id"])
        cmd.out.result(ended, lambda: facts(_facts(ended)))
        raise_for_job(ended)


@jobs_app.command()
def dismiss(
    jobs: Annotated[list[str], typer.Argument(metavar="JOB...", help="Ids of dead letters.")], as_json: JsonFlag = False
) -> None:
    """Take dead letters off the list; the jobs and what they left stay."""
    with eval_command(as_json) as (cmd, client):
        found = [client.dismiss_job(each) for each in jobs]
        words = "\n".join(f"Job {clean(each['id'])} is dismissed." for each in found)
        cmd.out.result({"items": found}, lambda: Text(words))


def _facts(job: dict[str, Any]) -> list[tuple[str, object]]:
    error = job["error"] or {}
    return [
        ("Job", f"{job['id']} ({job['type']})"),
        ("Status", status_text(job["status"])),
        ("Stage", job["stage"] or ""),
        ("Done", f"{job['percent']} %, {job['progress']['done']} of {job['progress']['total']}"),
        ("Attempt", str(job["attempt"])),
        ("Dead letter", "yes: retry it, or dismiss it" if job["dead_letter"] else ""),
        ("Dismissed", job["dismissed_at"] or ""),
        ("Succeeded by", job["succeeded_by"] or ""),
        ("Eval", job["eval_id"] or ""),
        ("Error", f"{clean(error['code'])}: {clean(error['message'])}" if error else ""),
    ]
