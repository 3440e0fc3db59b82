"""Request and response bodies of prices."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Self

from pydantic import Field

from orchestrator.http.schemas import Answer, Body, Text
from orchestrator.prices.age import age_warning
from orchestrator.prices.entries import Entry, LongPromptFacts
from orchestrator.prices.service import PriceUpdate

LEFT_OUT_SHOWN = 200


class PriceOut(Answer):
    """US dollars per million tokens."""

    provider: str
    model: str
    input_price: float
    output_price: float
    cached_input_price: float | None
    cache_write_price: float | None
    reasoning_price: float | None
    batch_input_price: float | None
    batch_output_price: float | None
    long_prompt_prices: LongPromptFacts | None
    context_tokens: int | None
    training_cutoff: date | None
    source: str
    as_of: datetime = Field(description="The date of the source; for an imported list, when it was imported.")
    shipped: bool = Field(description="Whether it is of the list that ships with this version.")
    price_warning: str | None = Field(description="Says so if the price is older than 90 days.")

    @classmethod
    def of(cls, entry: Entry, now: datetime) -> Self:
        return cls(
            provider=entry.provider,
            model=entry.model,
            **dict(entry.facts),
            source=entry.source,
            as_of=entry.as_of,
            shipped=entry.shipped,
            price_warning=age_warning(entry.as_of, now),
        )


class PricesUpdated(Answer):
    entries: int = Field(description="How many models the list has prices for.")
    changed: list[str] = Field(description="Slugs of the models here that got other prices or facts.")
    left_out: dict[str, str] = Field(description=f"Entries that make no sense, with the reason; at most {LEFT_OUT_SHOWN}.")
    left_out_count: int
    passed_over: int = Field(description="Entries that are not of chat models.")

    @classmethod
    def of(cls, update: PriceUpdate) -> Self:
        left_out = update.file.left_out
        return cls(
            entries=len(update.file.facts),
            changed=update.changed,
            left_out=dict(list(left_out.items())[:LEFT_OUT_SHOWN]),
            left_out_count=len(left_out),
            passed_over=update.file.passed_over,
        )


class PriceUse(Body):
    model: Annotated[Text, Field(min_length=1, max_length=200, description="A model's id or slug.")]
