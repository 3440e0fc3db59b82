"""Sends runs to Weights & Biases by its own library. The only module that imports wandb, which is an extra.

The run there has the id of the run here, so that a second export changes it. Values are its summary: it has no steps. The
usual variables apply, among them `WANDB_MODE=offline`.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.cli.errors import BadUsage, CliError
from orchestrator.cli.trackers.tracked_run import TrackedRun


def send(runs: Sequence[TrackedRun], project: str, address: str | None) -> list[str]:
    """Creates or changes a run of the project for each and returns their ids. The address is WANDB_BASE_URL if not given."""
    try:
        import wandb
        from wandb.errors import Error
    except ImportError as error:
        raise BadUsage("--to wandb needs its library: pip install 'benchyard[wandb]'.") from error
    ids = []
    try:
        for run in runs:
            settings = wandb.Settings(silent=True, **({"base_url": address} if address else {}))
            tracked = wandb.init(
                project=project,
                id=run.run_id,
                name=run.name,
                resume="allow",
                config=run.params,
                tags=[run.tags["benchyard.status"]],
                settings=settings,
            )
            tracked.summary.update(run.metrics | run.tags)
            if run.files:
                artefact = wandb.Artifact(f"benchyard-{run.run_id}", type="results")
                for file in run.files:
                    artefact.add_file(str(file), name=file.name)
                tracked.log_artifact(artefact)
            tracked.finish(exit_code=1 if run.status in ("FAILED", "KILLED") else 0)
            ids.append(run.run_id)
    except Error as error:
        raise CliError(f"Weights & Biases refuses: {str(error).splitlines()[0][:300]}") from error
    return ids
