"""Statements on traces and their feedback."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import and_, delete, func
from sqlalchemy import select as sa_select
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col, select

from orchestrator.db.workspaces import workspace_of
from orchestrator.evals.tables import VERDICTS
from orchestrator.traces.tables import Trace, TraceFeedback

PART = 500
"""Values per IN list: SQLite and PostgreSQL accept many more, but plan longer lists badly."""


def parts(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    for start in range(0, len(values), PART):
        yield values[start : start + PART]


def digests(session: Session, ids: Sequence[str]) -> dict[str, str]:
    """The content digests of those ids that exist."""
    stored: dict[str, str] = {}
    for part in parts(ids):
        stored.update(session.exec(select(Trace.id, Trace.digest).where(col(Trace.id).in_(part))).all())
    return stored


def add(session: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Stores new traces; a trace that a concurrent import has just stored under the same id is kept."""
    if rows:
        owned = [{**row, "workspace_id": workspace_of(session)} for row in rows]
        dialect = postgresql if session.get_bind().dialect.name == "postgresql" else sqlite
        session.connection().execute(dialect.insert(Trace).on_conflict_do_nothing(), owned)


def numbers(session: Session, ids: Sequence[str]) -> dict[str, int]:
    """Maps trace ids to our numbers; unknown ids are missing."""
    by_id: dict[str, int] = {}
    for part in parts(ids):
        rows = session.exec(select(Trace.id, Trace.number).where(col(Trace.id).in_(part))).all()
        by_id.update((id_, number) for id_, number in rows if number is not None)
    return by_id


def by_numbers(session: Session, numbers: Sequence[int]) -> dict[int, Trace]:
    traces: dict[int, Trace] = {}
    for part in parts(numbers):
        traces.update((row.number or 0, row) for row in session.exec(select(Trace).where(col(Trace.number).in_(part))).all())
    return traces


def by_id(session: Session, trace_id: str) -> Trace | None:
    return session.exec(select(Trace).where(Trace.id == trace_id)).first()


def page(
    session: Session,
    *,
    limit: int,
    after: int = 0,
    project: str | None = None,
    eval_set_id: str | None = None,
    label: str | None = None,
    contradicted_by: str | None = None,
    before: int | None = None,
) -> Sequence[tuple[Trace, TraceFeedback | None]]:
    """Traces in order of arrival. `label` is a rating, or `none` for traces without a rating in that set.

    `contradicted_by` is an eval: only traces whose label it contradicts. With `before`, traces before it, nearest first.
    """
    joined = and_(
        col(TraceFeedback.trace_number) == col(Trace.number), col(TraceFeedback.eval_set_id) == (eval_set_id or "")
    )
    query = select(Trace, TraceFeedback).join(TraceFeedback, joined, isouter=True)
    query = query.where(col(Trace.number) > after if before is None else col(Trace.number) < before)
    if project is not None:
        query = query.where(Trace.project == project)
    if label == "none":
        query = query.where(col(TraceFeedback.rating).is_(None))
    elif label is not None:
        query = query.where(TraceFeedback.rating == label)
    if contradicted_by is not None:
        against = sa_select(VERDICTS.c.trace_number).where(VERDICTS.c.eval_id == contradicted_by, VERDICTS.c.contradiction)
        query = query.where(col(Trace.number).in_(against))
    query = query.order_by(col(Trace.number) if before is None else col(Trace.number).desc())
    return [(trace, feedback) for trace, feedback in session.exec(query.limit(limit)).all()]


def count(session: Session, project: str | None) -> int:
    query = select(func.count()).select_from(Trace)
    return int(session.exec(query if project is None else query.where(Trace.project == project)).one())


def counts(session: Session) -> dict[str, int]:
    """Number of traces per project."""
    query = select(Trace.project, func.count()).group_by(Trace.project)
    return {project: int(number) for project, number in session.exec(query).all()}


def all_numbers(session: Session, project: str | None) -> list[int]:
    query = select(Trace.number).order_by(col(Trace.number))
    rows = session.exec(query if project is None else query.where(Trace.project == project)).all()
    return [number for number in rows if number is not None]


def feedback(session: Session, eval_set_id: str) -> list[tuple[int, str]]:
    """(number, rating) of every rated trace of a set, in order of arrival."""
    query = select(TraceFeedback.trace_number, TraceFeedback.rating).where(TraceFeedback.eval_set_id == eval_set_id)
    return [(number, rating) for number, rating in session.exec(query.order_by(col(TraceFeedback.trace_number))).all()]


def feedback_of(session: Session, eval_set_id: str, numbers: Collection[int]) -> dict[int, TraceFeedback]:
    feedback: dict[int, TraceFeedback] = {}
    for part in parts(list(numbers)):
        query = select(TraceFeedback).where(
            TraceFeedback.eval_set_id == eval_set_id, col(TraceFeedback.trace_number).in_(part)
        )
        feedback.update((row.trace_number, row) for row in session.exec(query).all())
    return feedback


def forget_feedback(session: Session, eval_set_id: str, number: int) -> bool:
    row = session.get(TraceFeedback, (eval_set_id, number))
    if row is None:
        return False
    session.delete(row)
    return True


def forget_set(session: Session, eval_set_id: str) -> None:
    session.connection().execute(delete(TraceFeedback).where(col(TraceFeedback.eval_set_id) == eval_set_id))


def label_counts(session: Session, eval_set_ids: Collection[str]) -> dict[str, dict[str, int]]:
    """Number of traces per set and rating."""
    query = (
        select(TraceFeedback.eval_set_id, TraceFeedback.rating, func.count())
        .where(col(TraceFeedback.eval_set_id).in_(eval_set_ids))
        .group_by(TraceFeedback.eval_set_id, TraceFeedback.rating)
    )
    counts: dict[str, dict[str, int]] = {}
    for set_id, rating, number in session.exec(query).all():
        counts.setdefault(set_id, {})[rating] = int(number)
    return counts


def delete_trace(session: Session, number: int) -> None:
    """Deletes a trace and its feedback."""
    session.connection().execute(delete(TraceFeedback).where(col(TraceFeedback.trace_number) == number))
    session.connection().execute(delete(Trace).where(col(Trace.number) == number))


def existing(session: Session, numbers: Sequence[int]) -> set[int]:
    """The given numbers whose traces still exist."""
    present: set[int] = set()
    for part in parts(numbers):
        rows = session.exec(select(Trace.number).where(col(Trace.number).in_(part))).all()
        present.update(number for number in rows if number is not None)
    return present
