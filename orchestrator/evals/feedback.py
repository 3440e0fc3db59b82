"""Writes feedback on traces, together with the contradictions it creates or resolves, in one transaction.

It locks the evals of the set first, so verdicts that arrive at the same time wait and every contradiction is counted exactly
once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from orchestrator.errors import NotFound
from orchestrator.evals import queries as eval_queries
from orchestrator.traces import queries as trace_queries
from orchestrator.traces.tables import TraceFeedback
from runner.contract.evals import Label


@dataclass(frozen=True)
class Opinion:
    """Feedback on one trace. A rating of None withdraws the earlier one."""

    trace_id: str
    rating: Label | None
    note: str | None = None


def contradicts(passed: bool | None, rating: str | None) -> bool:
    """Whether a verdict is the opposite of the label. Without a verdict or a label there is no contradiction."""
    return passed is not None and rating is not None and passed != (rating == Label.POSITIVE)


def rate(session: Session, eval_set_id: str, opinions: Sequence[Opinion], now: datetime) -> None:
    """Writes feedback into a set; the last rating of a trace wins. Raises `NotFound` with the ids of unknown traces."""
    latest = {opinion.trace_id: opinion for opinion in opinions}
    numbers = trace_queries.numbers(session, list(latest))
    if unknown := [trace_id for trace_id in latest if trace_id not in numbers]:
        some = ", ".join(repr(trace_id[:80]) for trace_id in unknown[:3])
        raise NotFound(f"there is no trace {some}; GET /api/traces lists the existing ones, POST /api/traces adds some")
    if eval_queries.lock_set(session, eval_set_id) is None:
        raise NotFound(f"there is no eval set {eval_set_id!r}; GET /api/eval-sets lists the existing ones")
    ids = sorted(row.id for row in eval_queries.evals_of_set(session, eval_set_id))
    evals = [row for row in (eval_queries.lock(session, id) for id in ids) if row is not None]
    before = trace_queries.feedback_of(session, eval_set_id, numbers.values())
    ratings = {number: row.rating for number, row in before.items()}
    moved = [
        numbers[opinion.trace_id] for opinion in latest.values() if ratings.get(numbers[opinion.trace_id]) != opinion.rating
    ]
    eval_queries.forget_disputes(session, ids, moved)
    for row in evals:
        executions = eval_queries.executions_of(session, row.id, list(numbers.values()))
        for opinion in latest.values():
            number = numbers[opinion.trace_id]
            if (execution := executions.get(number)) is not None:
                row.contradiction_count += contradicts(execution.passed, opinion.rating and opinion.rating.value)
                row.contradiction_count -= contradicts(execution.passed, ratings.get(number))
        session.add(row)
    for opinion in latest.values():
        _write(session, eval_set_id, numbers[opinion.trace_id], before.get(numbers[opinion.trace_id]), opinion, now)


def _write(
    session: Session, eval_set_id: str, number: int, existing: TraceFeedback | None, opinion: Opinion, now: datetime
) -> None:
    if opinion.rating is None:
        trace_queries.forget_feedback(session, eval_set_id, number)
        return
    row = existing or TraceFeedback(
        eval_set_id=eval_set_id, trace_number=number, rating=opinion.rating.value, created_at=now, updated_at=now
    )
    row.rating, row.updated_at = opinion.rating.value, now
    if opinion.note is not None:
        row.note = opinion.note
    session.add(row)
