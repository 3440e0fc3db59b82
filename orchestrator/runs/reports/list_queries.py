"""Queries of the list of runs: several filters at once, search, sorting, and what there is to choose from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, cast, func, or_
from sqlmodel import Session, col, select

from orchestrator.models.tables import LlmModel
from orchestrator.runs.queries import WITHOUT_TASK, tagged
from orchestrator.runs.tables import ContainerRun

CHOICES_OF = 3000
"""From how many of the newest runs the list takes what it offers as filters."""


@dataclass(frozen=True)
class ListFilter:
    """Which runs the list shows. Several values of one field are alternatives; an empty field means any."""

    statuses: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    model_ids: tuple[int, ...] = ()
    benchmarks: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    batch_id: str | None = None
    text: str = ""
    dead_after: int | None = None
    """Only runs given up after this many attempts that nobody resolved."""


@dataclass(frozen=True)
class Choices:
    """What occurs in runs, for filters."""

    benchmarks: list[str]
    triggers: list[str]
    kinds: list[str]
    tags: list[str]
    authors: list[str]


_MODEL = select(LlmModel.slug).where(col(LlmModel.id) == col(ContainerRun.model_id)).scalar_subquery()
SORTS: dict[str, Any] = {
    "created": col(ContainerRun.id),
    "name": col(ContainerRun.name),
    "model": _MODEL,
    "benchmark": cast(col(ContainerRun.benchmarks), Text),
    "status": col(ContainerRun.status),
    "items": col(ContainerRun.items_done),
    "score": col(ContainerRun.score)["estimate"].as_float(),
    "cost": col(ContainerRun.cost_usd),
    "tokens": col(ContainerRun.output_tokens),
    "ended": col(ContainerRun.completed_at),
    "author": col(ContainerRun.author),
}


def listed(
    session: Session, filters: ListFilter, *, sort: str, descending: bool, limit: int, start: int
) -> Sequence[ContainerRun]:
    """Runs of every kind; those without a value in the column come last."""
    by = SORTS[sort]
    order = [by.desc() if descending else by.asc()]
    if sort != "created":
        order = [order[0].nulls_last(), col(ContainerRun.id).desc()]
    query = select(ContainerRun).where(*_conditions(filters)).options(WITHOUT_TASK)
    return session.exec(query.order_by(*order).limit(limit).offset(start)).all()


def count(session: Session, filters: ListFilter) -> int:
    return session.exec(select(func.count()).select_from(ContainerRun).where(*_conditions(filters))).one()


def choices(session: Session) -> Choices:
    """What occurs in the newest runs: looking at all of them would take longer with every run."""
    # Cast to text because PostgreSQL cannot compare JSON values for equality.
    columns: Any = (
        cast(col(ContainerRun.benchmarks), Text).label("benchmarks"),
        col(ContainerRun.trigger_type),
        col(ContainerRun.kind),
        cast(col(ContainerRun.tags), Text).label("tags"),
        col(ContainerRun.author),
    )
    newest = select(*columns).order_by(col(ContainerRun.id).desc()).limit(CHOICES_OF).subquery()
    rows = session.exec(select(*newest.c).distinct()).all()
    return Choices(
        benchmarks=sorted({name for row in rows for name in json.loads(row[0])}),
        triggers=sorted({row[1] for row in rows}),
        kinds=sorted({row[2] for row in rows}),
        tags=sorted({tag for row in rows for tag in json.loads(row[3])}),
        authors=sorted({row[4] for row in rows if row[4]}),
    )


def _conditions(filters: ListFilter) -> list[ColumnElement[bool]]:
    run = ContainerRun
    pairs: list[tuple[Any, Sequence[object]]] = [
        (run.status, filters.statuses),
        (run.kind, filters.kinds),
        (run.model_id, filters.model_ids),
        (run.trigger_type, filters.triggers),
        (run.author, filters.authors),
    ]
    conditions: list[ColumnElement[bool]] = [col(column).in_(values) for column, values in pairs if values]
    if filters.benchmarks:
        conditions.append(or_(*(_on(name) for name in filters.benchmarks)))
    if filters.tags:
        conditions.append(or_(*(tagged(tag) for tag in filters.tags)))
    if filters.batch_id is not None:
        conditions.append(col(run.batch_id) == filters.batch_id)
    if filters.dead_after is not None:
        tried = col(run.attempts_without_progress) >= filters.dead_after
        unresolved = and_(col(run.dismissed_at).is_(None), col(run.succeeded_by).is_(None))
        conditions.append(and_(col(run.status) == "failed", tried, unresolved))
    conditions += [_mentions(word) for word in filters.text.split()[:8]]
    return conditions


def _on(benchmark: str) -> ColumnElement[bool]:
    return cast(col(ContainerRun.benchmarks), Text).contains(json.dumps(benchmark), autoescape=True)


def _mentions(word: str) -> ColumnElement[bool]:
    """Whether any text of a run has this word."""
    run = ContainerRun
    lists = (cast(col(run.benchmarks), Text), cast(col(run.tags), Text))
    texts: list[Any] = [run.id, run.name, run.note, run.author, run.instance_type, *lists]
    models = select(LlmModel.id).where(col(LlmModel.slug).icontains(word, autoescape=True))
    return or_(*(text.icontains(word, autoescape=True) for text in texts), col(run.model_id).in_(models))
