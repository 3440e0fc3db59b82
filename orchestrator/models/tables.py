"""Tables of models."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    Column,
)
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime


class LlmModel(SQLModel, table=True):
    """A model in the catalogue; the slug is its stable identity."""

    __tablename__ = "models"
    id: int | None = Field(default=None, primary_key=True)
    slug: str = Field(unique=True, index=True, max_length=200)
    provider: str = Field(max_length=100)
    name: str = Field(max_length=200)
    display_name: str = Field(default="", max_length=200)
    protocol: str = Field(max_length=40)
    params: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    input_price: float | None = None
    output_price: float | None = None
    cached_input_price: float | None = None
    cache_write_price: float | None = None
    reasoning_price: float | None = None
    batch_input_price: float | None = None
    batch_output_price: float | None = None
    long_prompt_prices: dict[str, float] | None = Field(default=None, sa_column=Column(JSON(none_as_null=True)))
    """The prices above a length of the prompt: `above_tokens`, and those of the prices above that differ."""
    prices_entered_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    price_source: str | None = Field(default=None, max_length=300)
    """Where the price table has the prices from; None if a person entered them."""
    context_tokens: int | None = None
    training_cutoff: date | None = None
    missing_since: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    archived_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    updated_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))

    @property
    def is_free(self) -> bool:
        """It costs nothing, as demo models and servers of one's own: such a price does not grow old."""
        return self.input_price == 0 and self.output_price == 0
