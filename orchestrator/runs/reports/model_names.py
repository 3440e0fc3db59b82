"""How responses, pages and files name the model of a run."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import Session

from orchestrator.models import queries as model_queries
from orchestrator.runs.tables import ContainerRun
from runner.contract.run_spec import RunKind

STORED_ANSWERS = "stored-answers"
"""The model name for answers that came from a file which names no model."""


def model_name(kind: str, slug: str | None) -> str | None:
    """The slug of the run's model; None for a run that calls none."""
    return STORED_ANSWERS if slug is None and kind == RunKind.GRADE else slug


def names_by_run(session: Session, runs: Sequence[ContainerRun]) -> dict[str, str | None]:
    """The model name of each run, by run id."""
    slugs = model_queries.slugs(session, (run.model_id for run in runs))
    return {run.id: model_name(run.kind, slugs.get(run.model_id)) for run in runs}


def name_of_model(session: Session, run: ContainerRun) -> str | None:
    return names_by_run(session, [run])[run.id]
