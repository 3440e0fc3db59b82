"""The `benchyard` command with its subcommands and groups. Every failure becomes a sentence and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from orchestrator.cli.commands.catalogue import benchmarks, datasets, models, prices, providers
from orchestrator.cli.commands.measuring import (
    batches,
    commands,
    evals,
    exports,
    grading,
    harnesses,
    imports,
    jobs,
    replay,
    results,
    runs,
    schedules,
)
from orchestrator.cli.commands.operating import (
    access,
    alerts,
    costs,
    fleet,
    images,
    installation,
    nuke,
    retention,
    service,
    sign_in,
)
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

    The service's address is BENCHYARD_URL, or BENCHYARD_HOST and BENCHYARD_PORT (http://127.0.0.1:8000); its token is in
    BENCHYARD_TOKEN, stored by `benchyard login`, or in the directory BENCHYARD_DATA (./data).
    """
    if workspace is not None:
        os.environ["BENCHYARD_WORKSPACE"] = workspace


_COMMANDS: tuple[Callable[..., None], ...] = (
    service.up,
    service.down,
    installation.adopt,
    service.demo,
    service.link,
    sign_in.login,
    sign_in.logout,
    sign_in.whoami,
    runs.run,
    results.show,
    results.logs,
    costs.calls,
    costs.costs,
    runs.cancel,
    runs.retry,
    grading.grade,
    grading.regrade,
    exports.export,
    replay.replay,
    fleet.fleet,
    service.doctor,
    service.serve,
    fleet.agent,
    nuke.nuke,
    installation.backup,
    installation.restore,
    installation.vacuum,
)
_GROUPS = {
    "images": images.images_app,
    "runs": retention.runs_app,
    "models": models.models_app,
    "prices": prices.prices_app,
    "providers": providers.providers_app,
    "batch": batches.batch_app,
    "command": commands.command_app,
    "harness": harnesses.harness_app,
    "benchmarks": benchmarks.benchmarks_app,
    "datasets": datasets.datasets_app,
    "traces": evals.traces_app,
    "evals": evals.evals_app,
    "jobs": jobs.jobs_app,
    "schedules": schedules.schedules_app,
    "tokens": access.tokens_app,
    "webhooks": alerts.webhooks_app,
    "keys": access.keys_app,
    "limits": access.limits_app,
    "audit": access.audit_app,
    "agents": fleet.agents_app,
}
for _function in _COMMANDS:
    app.command()(_function)
app.command("import")(imports.import_answers)
for _name, _group in _GROUPS.items():
    app.add_typer(_group, name=_name)


def main() -> None:
    """Runs the command and exits with its code."""
    try:
        app()
    except CliError as error:
        sys.stderr.write(f"benchyard: {clean(error)}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
