"""Statements on the runs that leaderboards use: the newest of each model and sample."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, select

from orchestrator.leaderboard.samples import Candidate
from orchestrator.models.tables import LlmModel
from orchestrator.runs import item_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.queueing.drafts import IMPORT
from orchestrator.runs.reports.scores import scores_by_benchmark, stored_sample
from orchestrator.runs.tables import ContainerRun

SAMPLES_PER_MODEL = 20
"""Maximum number of samples per model whose plans are read."""


@dataclass(frozen=True)
class BoardRun:
    """A completed run of a model in use, without its results."""

    id: str
    model_id: int
    benchmarks: list[str]
    score: dict[str, Any] | None
    cut_short: bool
    imported: bool


def completed_runs(session: Session, benchmark: str, limit: int = 2000) -> list[BoardRun]:
    """Runs of models in use on this benchmark, newest first; among them imported answers, but no regrades."""
    run = ContainerRun
    imported = (col(run.kind) == "grade") & (col(run.trigger_type) == IMPORT)
    columns: Any = (run.id, run.model_id, run.benchmarks, run.score, col(run.items_done) < col(run.items_total), imported)
    query = (
        select(*columns)
        .join(LlmModel, col(LlmModel.id) == col(run.model_id))
        .where(col(LlmModel.archived_at).is_(None), run.status == "completed")
        .where(col(run.kind).in_(("benchmark", "harness")) | imported)
        .order_by(col(run.id).desc())
        .limit(limit)
    )
    rows = [BoardRun(*row) for row in session.exec(query).all()]
    return [row for row in rows if benchmark in row.benchmarks]


def harness_names(session: Session) -> set[str]:
    """Benchmarks that harnesses have brought; no catalogue lists them."""
    query = select(ContainerRun.benchmarks).where(ContainerRun.kind == "harness", ContainerRun.status == "completed")
    return {name for names in session.exec(query).all() for name in names}


def newest_harness(session: Session, benchmark: str) -> tuple[str, list[str]] | None:
    """Digest and problems of the newest completed harness run on a benchmark of this name."""
    columns: Any = (ContainerRun.id, ContainerRun.benchmarks)
    query = select(*columns).where(ContainerRun.kind == "harness", ContainerRun.status == "completed")
    for run_id, benchmarks in session.exec(query.order_by(col(ContainerRun.id).desc())).all():
        task = run_queries.task_of(session, run_id) if benchmark in benchmarks else None
        if task is not None:
            problems = dict.fromkeys(key[1] for key in item_queries.keys(session, run_id) if key[0] == benchmark)
            return task.benchmarks[0].pack_digest, list(problems)
    return None


def read_candidates(session: Session, benchmark: str, pack_digest: str) -> list[Candidate]:
    """Newest first, imported answers after all runs that were measured here. Only the newest run of each model and sample is
    read.
    """
    candidates: list[Candidate] = []
    samples: set[tuple[int, str | None, str]] = set()
    counts: Counter[int] = Counter()
    for run in sorted(completed_runs(session, benchmark), key=lambda run: run.imported):
        sample, why_not = stored_sample(run.score, benchmark), _why_not(run, benchmark)
        if sample is not None and (sample["pack_digest"] != pack_digest or (run.model_id, why_not, sample["id"]) in samples):
            continue
        if counts[run.model_id] >= SAMPLES_PER_MODEL:
            continue
        counts[run.model_id] += 1
        if sample is not None:
            samples.add((run.model_id, why_not, sample["id"]))
        task = run_queries.task_of(session, run.id)
        parts = [part for part in task.benchmarks if part.name == benchmark] if task else []
        if not parts or parts[0].pack_digest != pack_digest:
            continue
        if sample is not None:
            version = sample["prompt_version"]
        else:  # stored by an older version
            version = item_queries.prompt_versions(session, run.id, [benchmark])[benchmark]
        problems = frozenset(parts[0].problem_ids or (key[1] for key in item_queries.keys(session, run.id)))
        candidates.append(Candidate(run.model_id, run.id, problems, version, why_not, run.imported))
    return candidates


def _why_not(run: BoardRun, benchmark: str) -> str | None:
    """Why the score of a run on this benchmark is not comparable, or None."""
    score = scores_by_benchmark(run.score, run.benchmarks).get(benchmark) or run.score
    if run.cut_short:
        return "its run ended before its last item"
    if not score or not score.get("comparable"):
        return "too many items of its run ended with errors of provider or infrastructure"
    return None
