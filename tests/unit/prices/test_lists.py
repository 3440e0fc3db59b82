"""Lists of prices: the one that ships, and files in LiteLLM's format."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.errors import Invalid
from orchestrator.prices.age import age_warning
from orchestrator.prices.entries import Entry, Facts, PriceTable, shipped_entries
from orchestrator.prices.litellm import MAX_BYTES, read_price_file

NOW = datetime(2026, 11, 18, tzinfo=UTC)
GOOD = {
    "litellm_provider": "openai",
    "mode": "chat",
    "input_cost_per_token": 2e-06,
    "output_cost_per_token": 1e-05,
    "cache_read_input_token_cost": 1e-07,
    "cache_creation_input_token_cost": 2.5e-06,
    "output_cost_per_reasoning_token": 1.2e-05,
    "input_cost_per_token_batches": 1e-06,
    "output_cost_per_token_batches": 5e-06,
    "input_cost_per_token_above_272k_tokens": 4e-06,
    "output_cost_per_token_above_272k_tokens": 1.5e-05,
    "max_input_tokens": 922000,
    "supports_vision": True,
}


def read(**entries: Any) -> Any:
    return read_price_file(json.dumps(entries).encode())


def test_every_kind_of_price_is_read_exactly() -> None:
    facts = read(**{"gpt-6.1-sol": GOOD}).facts["openai", "gpt-6.1-sol"]

    assert facts.as_json() == {
        "input_price": 2.0,
        "output_price": 10.0,
        "cached_input_price": 0.1,
        "cache_write_price": 2.5,
        "reasoning_price": 12.0,
        "batch_input_price": 1.0,
        "batch_output_price": 5.0,
        "long_prompt_prices": {"above_tokens": 272000, "input_price": 4.0, "output_price": 15.0},
        "context_tokens": 922000,
    }


def test_providers_have_their_names_here() -> None:
    together = GOOD | {"litellm_provider": "together_ai"}
    file = read(**{"gemini/gemini-x": GOOD | {"litellm_provider": "gemini"}, "together_ai/org/m": together})

    assert set(file.facts) == {("gemini", "gemini-x"), ("together", "org/m")}


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("text", "is not an object"),
        ({**GOOD, "input_cost_per_token": "2e-06"}, "input_cost_per_token is not a number"),
        ({**GOOD, "input_cost_per_token": True}, "input_cost_per_token is not a number"),
        ({**GOOD, "output_cost_per_token": -1e-06}, "output_price: Input should be greater than or equal to 0"),
        ({**GOOD, "output_cost_per_token": 5.0}, "output_price: Input should be less than or equal to 1000000"),
        ({k: v for k, v in GOOD.items() if k != "output_cost_per_token"}, "output_cost_per_token is missing"),
        ({**GOOD, "litellm_provider": 3}, "litellm_provider is missing"),
        ({**GOOD, "input_cost_per_token_above_128k_tokens": 1e-06}, "has prices above several lengths"),
        ({**GOOD, "max_input_tokens": -4}, "context_tokens: Input should be greater than or equal to 1"),
    ],
)
def test_a_bad_entry_is_named_and_left_out(entry: Any, why: str) -> None:
    file = read(bad=entry, good=GOOD, sample_spec={"mode": "one of"}, picture=GOOD | {"mode": "image_generation"})

    assert set(file.facts) == {("openai", "good")}
    assert file.left_out["bad"].startswith(why)
    assert file.passed_over == 1


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b"not json", b'{"a": NaN', b"[" * 100_000, b" " * (MAX_BYTES + 1)])
def test_what_is_no_list_is_refused(raw: bytes) -> None:
    with pytest.raises(Invalid, match="list of prices"):
        read_price_file(raw)


def test_numbers_that_are_none_are_left_out() -> None:
    raw = json.dumps({"a": GOOD}).replace("2e-06", "NaN", 1).encode()
    assert read_price_file(raw).left_out == {"a": "input_cost_per_token is not a number"}
    huge = json.dumps({"a": GOOD}).replace("2e-06", "1e999999999", 1).encode()
    assert "a" in read_price_file(huge).left_out


def test_the_list_that_ships_is_whole_and_dated() -> None:
    entries = shipped_entries()

    assert len({entry.key for entry in entries}) == len(entries) > 25
    for entry in entries:
        facts = entry.facts
        assert entry.source
        assert entry.as_of < NOW, "a list is not of the future"
        assert 0 < facts.input_price < facts.output_price
        assert facts.cached_input_price is None or facts.cached_input_price < facts.input_price
        assert facts.batch_input_price in (None, facts.input_price / 2)
        long = facts.long_prompt_prices
        assert long is None or (long.input_price or 0) > facts.input_price


def entry(model: str, price: float, *, days: int = 0, shipped: bool = False) -> Entry:
    facts = Facts(input_price=price, output_price=price)
    return Entry("openai", model, facts, "a test", NOW + timedelta(days=days), shipped)


def test_a_name_means_itself_else_the_name_without_its_version() -> None:
    table = PriceTable.of([entry("gpt-4o", 2.5), entry("gpt-4o-2024-05-13", 5)])

    def price(name: str) -> float | None:
        found = table.find("openai", name)
        return found and found.facts.input_price

    assert price("gpt-4o-2024-11-20") == 2.5
    assert price("gpt-4o-2024-05-13") == 5
    assert price("gpt-4o-mini") is None
    assert table.find("elsewhere", "gpt-4o") is None


def test_the_newer_entry_counts_and_on_the_same_day_the_imported_one() -> None:
    def price(*entries: Entry) -> float:
        return PriceTable.of(entries).entries["openai", "m"].facts.input_price

    assert price(entry("m", 1, shipped=True), entry("m", 2)) == 2
    assert price(entry("m", 2), entry("m", 1, shipped=True)) == 2
    assert price(entry("m", 1, shipped=True, days=1), entry("m", 2)) == 1


@pytest.mark.parametrize(("days", "old"), [(0, False), (90, False), (91, True)])
def test_a_price_is_old_after_90_days(days: int, *, old: bool) -> None:
    assert (age_warning(NOW - timedelta(days=days), NOW) is not None) is old
    assert age_warning(None, NOW) is None
