"""Statements on the model catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import func, literal
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col, select

from orchestrator.models.tables import LlmModel
from orchestrator.runs.tables import ContainerRun


def get(session: Session, model_id: int | None) -> LlmModel | None:
    return session.get(LlmModel, model_id) if model_id is not None and -(2**31) <= model_id < 2**31 else None


def lock(session: Session, model_id: int) -> LlmModel | None:
    """The model, locked for this transaction; None if it was deleted or archived."""
    query = select(LlmModel).where(LlmModel.id == model_id, col(LlmModel.archived_at).is_(None))
    return session.exec(query.with_for_update()).first()


def by_slug(session: Session, slug: str) -> LlmModel | None:
    return session.exec(select(LlmModel).where(LlmModel.slug == slug)).first()


def of_provider(session: Session, provider: str) -> Sequence[LlmModel]:
    """All models of a provider, including archived ones."""
    return session.exec(select(LlmModel).where(LlmModel.provider == provider).order_by(col(LlmModel.id))).all()


def add_new(session: Session, row: LlmModel) -> bool:
    """Adds the model unless its slug is taken; returns whether it was added."""
    values = row.model_dump(exclude={"id"})
    dialect: Any = postgresql if session.get_bind().dialect.name == "postgresql" else sqlite
    statement = dialect.insert(LlmModel).on_conflict_do_nothing().returning(literal(1))
    return session.connection().execute(statement, values).first() is not None


def page(session: Session, *, limit: int, after: int | None = None, with_archived: bool = False) -> Sequence[LlmModel]:
    query = select(LlmModel)
    if after is not None:
        query = query.where(col(LlmModel.id) > after)
    if not with_archived:
        query = query.where(col(LlmModel.archived_at).is_(None))
    return session.exec(query.order_by(col(LlmModel.id)).limit(limit)).all()


def by_ids(session: Session, ids: Iterable[int | None]) -> Mapping[int | None, LlmModel]:
    """Accepts None, which stands for no model."""
    model_ids = {model_id for model_id in ids if model_id is not None}
    if not model_ids:
        return {}
    rows = session.exec(select(LlmModel).where(col(LlmModel.id).in_(model_ids))).all()
    return {row.id: row for row in rows}


def slugs(session: Session, ids: Iterable[int | None]) -> Mapping[int | None, str]:
    return {model_id: model.slug for model_id, model in by_ids(session, ids).items()}


def run_count(session: Session, model_id: int) -> int:
    """Number of runs in all workspaces."""
    query = select(func.count()).where(ContainerRun.model_id == model_id)
    return int(session.connection().execute(query).scalar_one())
