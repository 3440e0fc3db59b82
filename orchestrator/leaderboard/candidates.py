"""The runs that a leaderboard may be made of, read from the database: the newest of each model and sample."""

from __future__ import annotations

from collections import Counter

from sqlmodel import Session

from orchestrator.leaderboard.samples import Candidate
from orchestrator.runs import item_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.reports.scores import scores_by_benchmark, stored_sample
from orchestrator.schedules import queries as schedule_queries
from orchestrator.schedules.queries import BoardRun

LOOKED_AT = 20
"""Samples of a model whose plans are read."""


def read_candidates(session: Session, benchmark: str, pack_digest: str) -> list[Candidate]:
    """Newest first. Of runs of one model on one sample only the newest is read."""
    found: list[Candidate] = []
    known: set[tuple[int, str | None, str]] = set()
    looked: Counter[int] = Counter()
    for run in schedule_queries.completed_runs(session, benchmark):
        sample, why_not = stored_sample(run.score, benchmark), _why_not(run, benchmark)
        if sample is not None and (sample["pack_digest"] != pack_digest or (run.model_id, why_not, sample["id"]) in known):
            continue
        if looked[run.model_id] >= LOOKED_AT:
            continue
        looked[run.model_id] += 1
        if sample is not None:
            known.add((run.model_id, why_not, sample["id"]))
        task = run_queries.task_of(session, run.id)
        parts = [part for part in task.benchmarks if part.name == benchmark] if task else []
        if not parts or parts[0].pack_digest != pack_digest:
            continue
        if sample is not None:
            version = sample["prompt_version"]
        else:  # stored by an older version
            version = item_queries.prompt_versions(session, run.id, [benchmark])[benchmark]
        problems = frozenset(parts[0].problem_ids)
        found.append(Candidate(run.model_id, run.id, problems, version, why_not))
    return found


def _why_not(run: BoardRun, benchmark: str) -> str | None:
    """Why the score of a run on this benchmark cannot be compared, or None."""
    score = scores_by_benchmark(run.score, run.benchmarks).get(benchmark) or run.score
    if run.cut_short:
        return "its run ended before its last item"
    if not score or not score.get("comparable"):
        return "too many items of its run ended with errors of provider or infrastructure"
    return None
