"""Sends runs to an MLflow server by its own client. The only module that imports mlflow, which is an extra."""

from __future__ import annotations

import os
from collections.abc import Sequence

from orchestrator.cli.errors import BadUsage, CliError
from orchestrator.cli.trackers.tracked_run import TAG, TrackedRun


def send(runs: Sequence[TrackedRun], experiment: str, address: str | None) -> list[str]:
    """Creates or changes one MLflow run for each and returns their ids. The address is MLFLOW_TRACKING_URI if not given."""
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")  # what we print is for programs, too
    try:
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param, RunTag
        from mlflow.exceptions import MlflowException
    except ImportError as error:
        raise BadUsage("--to mlflow needs MLflow's client: pip install 'benchyard[mlflow]'.") from error
    ids = []
    try:
        client = MlflowClient(tracking_uri=address)
        known = client.get_experiment_by_name(experiment)
        experiment_id = known.experiment_id if known is not None else client.create_experiment(experiment)
        for run in runs:
            found = client.search_runs([experiment_id], filter_string=f"tags.`{TAG}` = '{run.run_id}'", max_results=1)
            if found:
                run_id = found[0].info.run_id
                new_params = {key: value for key, value in run.params.items() if key not in found[0].data.params}
            else:
                created = client.create_run(
                    experiment_id, start_time=run.started_ms, run_name=run.name, tags={TAG: run.run_id}
                )
                run_id, new_params = created.info.run_id, run.params
            at = run.ended_ms or run.started_ms
            client.log_batch(
                run_id,
                metrics=[Metric(key, value, at, 0) for key, value in run.metrics.items()],
                params=[Param(key, value) for key, value in new_params.items()],
                tags=[RunTag(key, value) for key, value in run.tags.items()],
            )
            for file in run.files:
                client.log_artifact(run_id, str(file), "benchyard")
            if run.ended_ms is not None:
                client.set_terminated(run_id, status=run.status, end_time=run.ended_ms)
            ids.append(str(run_id))
    except MlflowException as error:
        raise CliError(f"MLflow refuses: {str(error).splitlines()[0][:300]}") from error
    return ids
