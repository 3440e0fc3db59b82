"""What a run will cost, before it starts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from orchestrator.costs.quote import PastRun, Source, quote, sentence
from orchestrator.gateway.ledger.prices import Prices

PRICES = Prices(Decimal(1), Decimal(10))
NEW = {"items": 100, "concurrency": 10, "prompt_bytes": 4000, "max_output_tokens": 1000}


def test_without_past_runs_there_are_bounds() -> None:
    found = quote(**NEW, prices=PRICES, past=[])  # type: ignore[arg-type]
    assert found.source is Source.TOKEN_LIMITS
    assert found.cost_usd is not None
    assert found.cost_usd.low == pytest.approx(100 * 1000 * 1e-6)
    assert found.cost_usd.high == found.worst_case_usd == pytest.approx(100 * (4000 + 10_000) * 1e-6)
    assert (found.cost_usd.expected, found.seconds) == (None, None)


def test_every_turn_counts_in_the_worst_case_with_what_was_said_before() -> None:
    new: dict[str, Any] = {**NEW, "items": {1: 10, 3: 5}}
    found = quote(**new, prices=PRICES, past=[])
    first, second, third = 4000 + 10_000, 4000 + 5000 + 10_000, 4000 + 2 * 5000 + 10_000
    assert found.worst_case_usd == pytest.approx((15 * first + 5 * (second + third)) * 1e-6)
    assert found.cost_usd is not None
    assert found.cost_usd.low == pytest.approx(15 * 1000 * 1e-6), "a conversation may end with its first answer"
    assert found.turns == 3
    assert "up to 3 times per item" in sentence(found, "m", priced=True)
    assert "per item" not in sentence(quote(**NEW, prices=PRICES, past=[]), "m", priced=True)  # type: ignore[arg-type]


def test_past_runs_give_tokens_and_time_per_item_at_todays_prices() -> None:
    past = [PastRun(10, 5, 10_000, 1_000, 20.0), PastRun(20, 5, 20_000, 4_000, 60.0)]
    found = quote(**NEW, prices=PRICES, past=past)  # type: ignore[arg-type]
    assert (found.source, found.runs_used) == (Source.PAST_RUNS, 2)
    assert found.cost_usd is not None
    assert found.seconds is not None
    assert (found.cost_usd.low, found.cost_usd.high) == (pytest.approx(0.2), pytest.approx(0.3))
    assert (found.seconds.low, found.seconds.high) == (pytest.approx(100.0), pytest.approx(150.0))
    one = quote(**NEW, prices=PRICES, past=past[:1]).cost_usd  # type: ignore[arg-type]
    assert one is not None
    assert (one.low, one.expected, one.high) == (pytest.approx(0.14), pytest.approx(0.2), pytest.approx(0.26))


def test_an_unknown_price_is_said() -> None:
    found = quote(**NEW, prices=None, past=[])  # type: ignore[arg-type]
    assert (found.cost_usd, found.worst_case_usd) == (None, None)
    assert "m has no price" in sentence(found, "m", priced=False)
