"""The `benchyard` command: puts the commands together and turns every failure into a sentence and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from orchestrator.cli.commands import agents as agent_commands
from orchestrator.cli.commands import audit as audit_commands
from orchestrator.cli.commands import backups as backup_commands
from orchestrator.cli.commands import batches as batch_commands
from orchestrator.cli.commands import calls as calls_commands
from orchestrator.cli.commands import catalogue as catalogue_commands
from orchestrator.cli.commands import commands as command_commands
from orchestrator.cli.commands import costs as cost_commands
from orchestrator.cli.commands import datasets as dataset_commands
from orchestrator.cli.commands import deletion as deletion_commands
from orchestrator.cli.commands import evals as eval_commands
from orchestrator.cli.commands import exports as export_commands
from orchestrator.cli.commands import grading as grade_commands
from orchestrator.cli.commands import images as image_commands
from orchestrator.cli.commands import installation as installation_commands
from orchestrator.cli.commands import jobs as job_commands
from orchestrator.cli.commands import limits as limit_commands
from orchestrator.cli.commands import models as model_commands
from orchestrator.cli.commands import nuke as nuke_commands
from orchestrator.cli.commands import provider_keys as key_commands
from orchestrator.cli.commands import replay as replay_commands
from orchestrator.cli.commands import runs as run_commands
from orchestrator.cli.commands import schedules as schedule_commands
from orchestrator.cli.commands import service as service_commands
from orchestrator.cli.commands import sign_in as login_commands
from orchestrator.cli.commands import tokens as token_commands
from orchestrator.cli.commands import traces as trace_commands
from orchestrator.cli.commands import webhooks as webhook_commands
from orchestrator.cli.errors import INTERRUPTED, CliError
from orchestrator.cli.view.text import clean

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.callback()
def benchyard(
    workspace: Annotated[
        str | None, typer.Option("--workspace", help="Workspace to work in, by its slug; or BENCHYARD_WORKSPACE.")
    ] = None,
) -> None:
    """Measure language models: one short-lived, sandboxed container per run.

    The service is found at BENCHYARD_URL, or at BENCHYARD_HOST and BENCHYARD_PORT (http://127.0.0.1:8000); its token in
    BENCHYARD_TOKEN, from `benchyard login`, or in the directory BENCHYARD_DATA (./data).
    """
    if workspace is not None:
        os.environ["BENCHYARD_WORKSPACE"] = workspace


_COMMANDS: tuple[Callable[..., None], ...] = (
    service_commands.up,
    service_commands.down,
    installation_commands.adopt,
    service_commands.demo,
    service_commands.link,
    login_commands.login,
    login_commands.logout,
    login_commands.whoami,
    run_commands.run,
    run_commands.show,
    run_commands.logs,
    calls_commands.calls,
    cost_commands.costs,
    run_commands.cancel,
    run_commands.retry,
    grade_commands.grade,
    grade_commands.regrade,
    export_commands.export,
    replay_commands.replay,
    catalogue_commands.benchmarks,
    catalogue_commands.fleet,
    service_commands.doctor,
    service_commands.serve,
    agent_commands.agent,
    nuke_commands.nuke,
    backup_commands.backup,
    backup_commands.restore,
    backup_commands.vacuum,
)
for _function in _COMMANDS:
    app.command()(_function)
app.add_typer(image_commands.images_app, name="images")
app.add_typer(deletion_commands.runs_app, name="runs")
app.add_typer(model_commands.models_app, name="models")
app.add_typer(batch_commands.batch_app, name="batch")
app.add_typer(command_commands.command_app, name="command")
app.add_typer(dataset_commands.datasets_app, name="datasets")
app.add_typer(trace_commands.traces_app, name="traces")
app.add_typer(eval_commands.evals_app, name="evals")
app.add_typer(job_commands.jobs_app, name="jobs")
app.add_typer(schedule_commands.schedules_app, name="schedules")
app.add_typer(token_commands.tokens_app, name="tokens")
app.add_typer(webhook_commands.webhooks_app, name="webhooks")
app.add_typer(key_commands.keys_app, name="keys")
app.add_typer(limit_commands.limits_app, name="limits")
app.add_typer(audit_commands.audit_app, name="audit")
app.add_typer(agent_commands.agents_app, name="agents")


def main() -> None:
    """Run the command and exit with its code."""
    try:
        app()
    except CliError as error:
        sys.stderr.write(f"benchyard: {clean(error)}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # the reader has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
