"""Statements on imported prices, and on the models that have prices from a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import delete
from sqlmodel import Session, col, or_, select

from orchestrator.models.tables import LlmModel
from orchestrator.prices.tables import PriceEntry


def imported(session: Session) -> Sequence[PriceEntry]:
    return session.exec(select(PriceEntry)).all()


def replace_all(session: Session, rows: Iterable[PriceEntry]) -> None:
    """The imported list is replaced as a whole: a model that is gone from it has no price there any more."""
    session.connection().execute(delete(PriceEntry))
    session.add_all(rows)


def open_to_lists(session: Session) -> Sequence[LlmModel]:
    """Models whose prices nobody has entered, locked until the transaction ends."""
    never = col(LlmModel.prices_entered_at).is_(None)
    query = select(LlmModel).where(col(LlmModel.archived_at).is_(None), or_(never, col(LlmModel.price_source).is_not(None)))
    return session.exec(query.order_by(col(LlmModel.id)).with_for_update()).all()
