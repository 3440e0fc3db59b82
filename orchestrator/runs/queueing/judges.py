"""The models that judge a run's answers. Which model that is, is fixed when the run is queued, by its id."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from sqlmodel import Session

from orchestrator.errors import Invalid
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs.queueing.drafts import PlannedBenchmark, Task
from orchestrator.runs.queueing.model_specs import model_spec_of

NOT_MEASURED = {"slug", "request_timeout_s"}
"""Fields of a model that do not change what it says."""


class JudgeMissing(Invalid):
    """A benchmark is judged by a model that is not in the catalogue."""


def judge_slug(part: PlannedBenchmark) -> str | None:
    """The slug of the model that the benchmark's file names as judge; None if no model judges it."""
    grader = part.rules.judge.grader if part.rules else None
    return grader.model if grader else None


def find_judge(session: Session, part: PlannedBenchmark) -> LlmModel | None:
    """The model that judges a benchmark; None if no model does. Raises `JudgeMissing`."""
    slug = judge_slug(part)
    if slug is None:
        return None
    model = model_queries.by_slug(session, slug)
    if model is None or model.archived_at is not None:
        raise JudgeMissing(
            f"{part.name} is judged by the model {slug!r}, which is not in the catalogue; add it with `benchyard models add "
            f"{slug}`, or name another judge in the file that describes {part.name} and add that again"
        )
    return model


def with_judges(session: Session, task: Task) -> Task:
    """The task with the judge of each benchmark fixed, and made part of its prompt version. Raises `JudgeMissing`."""
    if not any(judge_slug(part) for part in task.benchmarks):
        return task
    return task.model_copy(update={"benchmarks": [_with_judge(session, part) for part in task.benchmarks]})


def _with_judge(session: Session, part: PlannedBenchmark) -> PlannedBenchmark:
    if part.judge_model_id is not None or part.rules is None or (model := find_judge(session, part)) is None:
        return part
    version = f"{part.rules.prompt_version[:88]}-j{judge_digest(model)[:8]}"
    return part.model_copy(
        update={"judge_model_id": model.id, "rules": part.rules.model_copy(update={"prompt_version": version})}
    )


def judge_digest(model: LlmModel) -> str:
    """Of everything about a model that changes its verdicts: results by different judges are not compared."""
    told = model_spec_of(model).model_dump(mode="json", exclude=NOT_MEASURED, exclude_defaults=True)
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def judge_models(session: Session, parts: Iterable[PlannedBenchmark]) -> dict[int, LlmModel]:
    """The judges of a queued run by id; one that was removed since is left out."""
    ids = {part.judge_model_id for part in parts if part.judge_model_id is not None}
    models = model_queries.by_ids(session, ids) if ids else {}
    return {model_id: model for model_id, model in models.items() if model_id is not None}
