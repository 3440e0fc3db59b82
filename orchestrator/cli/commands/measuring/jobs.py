"""Commands about jobs of every kind: list, show, cancel, retry, dismiss; and waiting for a job."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from orchestrator.cli.api.client import Json
from orchestrator.cli.context import Command, command
from orchestrator.cli.errors import INTERRUPTED, RunCancelled, RunFailed
from orchestrator.cli.view.output import Columns, JsonFlag, facts, status_text
from orchestrator.cli.view.text import clean

jobs_app = typer.Typer(help="Jobs of every kind: list (the default), show, cancel, retry, dismiss.")
JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="A job's id.")]
Detach = Annotated[bool, typer.Option("--detach", "-d", help="Print the job's id and return.")]
COLUMNS: Columns = {
    "Job": "id",
    "Type": "type",
    "Status": lambda job: status_text(job["status"]),
    "Stage": lambda job: job["stage"] or "",
    "Done": lambda job: f"{job['percent']} %",
    "Attempt": "attempt",
    "Error": lambda job: (job["error"] or {}).get("code", ""),
}


@jobs_app.callback(invoke_without_command=True)
def jobs(
    context: typer.Context,
    kind: Annotated[
        str | None, typer.Option("--type", help="benchmark, grade, eval_generate, eval_execute, command or dataset_build.")
    ] = None,
    status: Annotated[str | None, typer.Option(help="pending, starting, running, completed, failed, cancelled.")] = None,
    dead_letter: Annotated[
        bool, typer.Option("--dead-letter", help="Only those that failed 3 attempts and are neither retried nor dismissed.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of jobs.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """List jobs of all kinds, newest first; or show, cancel, retry, dismiss one."""
    if context.invoked_subcommand is not None:
        return
    with command(as_json) as cmd:
        jobs = cmd.client.pages(
            "/api/jobs", limit=limit, type=kind or None, status=status or None, dead_letter=dead_letter or None
        )
        cmd.out.items(jobs, COLUMNS, right=("Done", "Attempt"), empty="No jobs.", value=jobs)


def _path(job_id: str) -> str:
    return f"/api/jobs/{quote(job_id, safe='')}"


@jobs_app.command()
def show(job_id: JobArgument, as_json: JsonFlag = False) -> None:
    """Show a job: its progress, or how it ended."""
    with command(as_json) as cmd:
        job = cmd.client.get(_path(job_id))
        cmd.out.result(job, lambda: facts(_facts(job)))


@jobs_app.command()
def cancel(job_id: JobArgument, as_json: JsonFlag = False) -> None:
    """Stop a job and its container."""
    with command(as_json) as cmd:
        job = cmd.client.post(f"{_path(job_id)}/cancel")
        verb = "was" if job["status"] == "cancelled" else "is being"
        cmd.out.result(job, f"Job {job['id']} {verb} cancelled.")


@jobs_app.command()
def retry(job_id: JobArgument, detach: Detach = False, as_json: JsonFlag = False) -> None:
    """Start a new job for the unfinished work of an ended one."""
    with command(as_json) as cmd:
        queued = cmd.client.post(f"{_path(job_id)}/retry")
        if detach:
            cmd.out.result(queued, str(queued["job_id"]))
            return
        job = wait_for_job(cmd, queued["job_id"])
        cmd.out.result(job, lambda: facts(_facts(job)))
        raise_for_job(job)


@jobs_app.command()
def dismiss(
    job_ids: Annotated[list[str], typer.Argument(metavar="JOB...", help="Ids of dead letters.")], as_json: JsonFlag = False
) -> None:
    """Remove dead letters from the list; the jobs and their results stay."""
    with command(as_json) as cmd:
        jobs = [cmd.client.post(f"{_path(job_id)}/dismiss") for job_id in job_ids]
        cmd.out.result({"items": jobs}, "\n".join(f"Job {clean(job['id'])} is dismissed." for job in jobs))


def _facts(job: Json) -> list[tuple[str, object]]:
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


def wait_for_job(cmd: Command, job_id: str) -> Json:
    """Follows a job to its end and prints a line per stage. An interruption does not stop the job."""
    last = ""
    try:
        for event in cmd.client.follow(_path(job_id)):
            data = event.data
            stage = clean(data.get("stage") or data.get("status") or "")
            detail = f", {clean(data['detail'])}" if data.get("detail") else ""
            if stage and stage + detail != last:
                last = stage + detail
                share = f" {data['percent']} %" if data.get("percent") is not None else ""
                cmd.out.note(f"{stage}{share}{detail}")
    except KeyboardInterrupt:
        cmd.out.warn(
            f"Job {job_id} continues: `benchyard jobs show {job_id}` shows it, `benchyard jobs cancel {job_id}` stops it."
        )
        raise typer.Exit(INTERRUPTED) from None
    return cmd.client.get(_path(job_id))


def raise_for_job(job: Json) -> None:
    error = job.get("error") or {}
    why = f" ({clean(error.get('code', ''))}): {clean(error.get('message', ''))}" if error else "."
    if job["status"] == "failed":
        raise RunFailed(f"Job {job['id']} failed{why}")
    if job["status"] == "cancelled":
        raise RunCancelled(f"Job {job['id']} was cancelled.")
