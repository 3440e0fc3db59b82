"""The prices of a model of the catalogue. Pure: a row in, prices out."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from orchestrator.gateway.ledger.prices import LongPrompts, Prices
from orchestrator.models.tables import LlmModel


def prices_of(model: LlmModel | Any) -> Prices | None:
    """None if a price is missing: the cost is then unknown, and a budget cannot be kept."""
    if model.input_price is None or model.output_price is None:
        return None
    long: dict[str, float] = model.long_prompt_prices or {}
    return Prices(
        input_per_mtok=Decimal(str(model.input_price)),
        output_per_mtok=Decimal(str(model.output_price)),
        cached_input_per_mtok=_decimal(model.cached_input_price),
        cache_write_per_mtok=_decimal(model.cache_write_price),
        entered_on=model.prices_entered_at.date() if model.prices_entered_at else None,
        reasoning_per_mtok=_decimal(model.reasoning_price),
        batch_input_per_mtok=_decimal(model.batch_input_price),
        batch_output_per_mtok=_decimal(model.batch_output_price),
        long_prompts=LongPrompts(
            above_tokens=int(long["above_tokens"]),
            input_per_mtok=_decimal(long.get("input_price")),
            output_per_mtok=_decimal(long.get("output_price")),
            cached_input_per_mtok=_decimal(long.get("cached_input_price")),
            cache_write_per_mtok=_decimal(long.get("cache_write_price")),
        )
        if long
        else None,
    )


def _decimal(price: float | None) -> Decimal | None:
    return None if price is None else Decimal(str(price))
