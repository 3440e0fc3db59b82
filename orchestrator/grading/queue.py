"""Queues a run of kind `grade` together with the stored answers that it judges, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlmodel import Session

from orchestrator.grading import queries
from orchestrator.grading.formats import Answers
from orchestrator.runs.queueing.drafts import Grade
from orchestrator.runs.queueing.queue import enqueue


def enqueue_answers(
    session: Session, draft: Grade, answers: Mapping[str, Answers], *, now: datetime, daily_budget_usd: float | None
) -> str:
    """Queue the run with its answers by benchmark; returns the run's id."""
    run_id = enqueue(session, draft, now=now, daily_budget_usd=daily_budget_usd)
    for benchmark, given in answers.items():
        queries.add(session, run_id, benchmark, given.rows())
    return run_id
