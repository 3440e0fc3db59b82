"""Statements on providers and on learned forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, func
from sqlmodel import Session, col, select

from orchestrator.models.tables import LlmModel
from orchestrator.providers.tables import LearnedForm, StoredProvider


def providers(session: Session) -> Sequence[StoredProvider]:
    return session.exec(select(StoredProvider).order_by(col(StoredProvider.name))).all()


def lock_all(session: Session) -> Sequence[StoredProvider]:
    return session.exec(select(StoredProvider).order_by(col(StoredProvider.id)).with_for_update()).all()


def lock(session: Session, name: str) -> StoredProvider | None:
    return session.exec(select(StoredProvider).where(StoredProvider.name == name).with_for_update()).first()


def learned(session: Session) -> Sequence[LearnedForm]:
    return session.exec(select(LearnedForm)).all()


def learned_form(session: Session, provider: str, server: str, model: str) -> LearnedForm | None:
    return session.get(LearnedForm, (provider, server, model))


def forget(session: Session, provider: str, model: str | None = None) -> int:
    """Deletes what was learned of a provider, or of one of its models; returns the number of rows."""
    statement: Any = delete(LearnedForm).where(col(LearnedForm.provider) == provider)
    if model is not None:
        statement = statement.where(col(LearnedForm.model) == model)
    return int(session.connection().execute(statement).rowcount)


def model_counts(session: Session) -> dict[str, int]:
    """Number of models in the catalogue, by provider."""
    columns: Any = (LlmModel.provider, func.count())
    query = select(*columns).where(col(LlmModel.archived_at).is_(None)).group_by(col(LlmModel.provider))
    return {provider: int(count) for provider, count in session.exec(query).all()}


def a_model(session: Session, provider: str) -> LlmModel | None:
    """A model of the catalogue to try a provider with: the one that was added last and is not missing."""
    query = select(LlmModel).where(
        LlmModel.provider == provider, col(LlmModel.archived_at).is_(None), col(LlmModel.missing_since).is_(None)
    )
    return session.exec(query.order_by(col(LlmModel.id).desc())).first()


def model_named(session: Session, provider: str, name: str) -> LlmModel | None:
    """By slug or by the name at the provider."""
    query = select(LlmModel).where(LlmModel.provider == provider, col(LlmModel.archived_at).is_(None))
    return session.exec(query.where((col(LlmModel.slug) == name) | (col(LlmModel.name) == name))).first()
