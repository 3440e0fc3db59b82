"""Prices beyond input and output: reasoning, long prompts, batches, and what caching saves."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from orchestrator.gateway.ledger.prices import LongPrompts, Prices, cache_saving_nano_usd, cost_nano_usd, worst_case_nano_usd
from orchestrator.gateway.protocols.protocol import TokenUsage

PRICES = Prices(
    Decimal(2),
    Decimal(10),
    cached_input_per_mtok=Decimal("0.2"),
    cache_write_per_mtok=Decimal("2.5"),
    reasoning_per_mtok=Decimal(12),
    batch_input_per_mtok=Decimal(1),
    batch_output_per_mtok=Decimal(5),
    long_prompts=LongPrompts(1000, Decimal(4), Decimal(15)),
)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (TokenUsage(1000, 100, reasoning_tokens=40), 1000 * 2000 + 60 * 10000 + 40 * 12000),
        (TokenUsage(0, 10, reasoning_tokens=40), 10 * 12000),
        (TokenUsage(1001, 100), 1001 * 4000 + 100 * 15000),
        (TokenUsage(2000, 0, cached_tokens=1500), 500 * 4000 + 1500 * 400),
        (TokenUsage(2000, 0, cache_write_tokens=2000), 2000 * 5000),
        (TokenUsage(1001, 100, reasoning_tokens=100), 1001 * 4000 + 100 * 18000),
    ],
    ids=["reasoning", "more reasoning than output", "long prompt", "long and cached", "long and written", "long reasoning"],
)
def test_cost(usage: TokenUsage, expected: int) -> None:
    assert cost_nano_usd(usage, PRICES) == expected


@pytest.mark.parametrize("prompt", [900, 1000, 1001, 4000])
@pytest.mark.parametrize("prices", [PRICES, PRICES.batched(), replace(PRICES, long_prompts=LongPrompts(1000, Decimal(1)))])
def test_no_usage_costs_more_than_the_worst_case(prompt: int, prices: Prices) -> None:
    worst = worst_case_nano_usd(prompt, 500, prices)
    for size in (prompt, min(prompt, 1000)):
        for cached, written in ((0, 0), (size, 0), (0, size), (size // 2, size // 2)):
            for reasoning in (0, 500):
                assert cost_nano_usd(TokenUsage(size, 500, cached, written, reasoning), prices) <= worst


def test_a_batch_has_its_own_prices_and_cheaper_caches_in_proportion() -> None:
    batched = PRICES.batched()

    assert (batched.input_per_mtok, batched.output_per_mtok) == (Decimal(1), Decimal(5))
    assert (batched.cached, batched.written, batched.reasoning) == (Decimal("0.1"), Decimal("1.25"), Decimal(6))
    assert cost_nano_usd(TokenUsage(2000, 10), batched) == 2000 * 2000 + 10 * 7500
    assert Prices(Decimal(3), Decimal(15)).batched() == Prices(Decimal(3), Decimal(15)), "no batch price: the full price"
    assert Prices(Decimal(0), Decimal(0), batch_input_per_mtok=Decimal(0)).batched().input_per_mtok == 0


def test_what_caching_saves_and_costs() -> None:
    assert cache_saving_nano_usd(TokenUsage(1000, 5, cached_tokens=900), PRICES) == 900 * (2000 - 200)
    assert cache_saving_nano_usd(TokenUsage(1000, 5, cache_write_tokens=900), PRICES) == -900 * 500
    assert cache_saving_nano_usd(TokenUsage(1000, 5), PRICES) == 0
