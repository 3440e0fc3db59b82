"""Queries on stored answers, which runs of kind `grade` judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import insert, literal
from sqlalchemy import select as sa_select
from sqlmodel import Session, col, select

from orchestrator.grading.tables import StoredAnswersRow

Answers = Sequence[dict[str, Any]]


def add(session: Session, run_id: str, benchmark: str, by_problem: Mapping[str, Answers]) -> None:
    rows = [
        {"run_id": run_id, "benchmark": benchmark, "problem_id": problem_id, "answers": list(answers)}
        for problem_id, answers in by_problem.items()
    ]
    if rows:
        session.connection().execute(insert(StoredAnswersRow), rows)


def of(session: Session, run_id: str, benchmark: str, problem_ids: Sequence[str]) -> dict[str, Answers]:
    """The answers to some problems of a run."""
    query = select(StoredAnswersRow.problem_id, StoredAnswersRow.answers).where(
        StoredAnswersRow.run_id == run_id,
        StoredAnswersRow.benchmark == benchmark,
        col(StoredAnswersRow.problem_id).in_(problem_ids),
    )
    return dict(session.exec(query).all())


def copy(session: Session, source: str, target: str) -> None:
    """Copy the answers of `source` to `target`."""
    columns = [c.name for c in StoredAnswersRow.__table__.columns]  # type: ignore[attr-defined]
    sources: list[Any] = [literal(target) if name == "run_id" else getattr(StoredAnswersRow, name) for name in columns]
    query = sa_select(*sources).where(col(StoredAnswersRow.run_id) == source)
    session.connection().execute(insert(StoredAnswersRow).from_select(columns, query))
