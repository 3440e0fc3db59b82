"""What calls of one batch share, their names, their prices, and the sentence about their progress."""

from __future__ import annotations

from decimal import Decimal

import pytest

from orchestrator.gateway.ledger.prices import LongPrompts, Prices
from orchestrator.gateway.provider_batches.lots import (
    Lot,
    PartProgress,
    at_batch_prices,
    custom_id,
    position_of,
    sentence,
    turn_of,
)
from orchestrator.gateway.upstream.secrets.credentials import Payer, PayerKind
from runner.contract.run_spec import Protocol, call_key, judge_key

PART = "01a1efd4-3aa5-7143-bb69-d2ca41f0d192"


def test_a_lot_survives_its_text() -> None:
    prices = Prices(Decimal("0.1"), Decimal(2), long_prompts=LongPrompts(200_000, Decimal(4)))
    payer = Payer(PayerKind.WORKSPACE, "team", "k1")
    lot = Lot("anthropic", "m", Protocol.ANTHROPIC, {"b": "2", "a": "1"}, payer, prices)
    assert Lot.of(lot.text()) == lot
    assert Lot("anthropic", "m", Protocol.ANTHROPIC, {"a": "1", "b": "2"}, payer, prices).text() == lot.text()


def test_the_name_of_a_call_fits_every_provider_and_is_of_its_part() -> None:
    name = custom_id(PART, 49_999)
    assert len(name) <= 64
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_")
    assert position_of(PART, name) == 49_999


@pytest.mark.parametrize("name", [None, 7, "", PART, f"{PART}-", f"{PART}-x", f"{PART}-1-2", f"other-{PART}-1", f"{PART}-²"])
def test_other_names_are_of_no_part(name: object) -> None:
    assert position_of(PART, name) is None


def test_turns_are_read_from_keys_and_judges_are_in_the_first() -> None:
    assert [turn_of(call_key("b", "p/3", 2, turn)) for turn in (0, 5)] == [0, 5]
    assert turn_of(judge_key("b", "p", 0, 3)) == 0


def test_known_batch_prices_win_over_the_share() -> None:
    half = at_batch_prices(Prices(Decimal(2), Decimal(10), cached_input_per_mtok=Decimal(1)), Decimal("0.5"))
    assert half is not None
    assert (half.input_per_mtok, half.output_per_mtok, half.cached_input_per_mtok) == (
        Decimal(1),
        Decimal(5),
        Decimal("0.5"),
    )
    known = Prices(Decimal(2), Decimal(10), batch_input_per_mtok=Decimal("1.5"), batch_output_per_mtok=Decimal(9))
    own = at_batch_prices(known, Decimal("0.5"))
    assert own is not None
    assert (own.input_per_mtok, own.output_per_mtok) == (Decimal("1.5"), Decimal(9))
    assert at_batch_prices(None, Decimal("0.5")) is None


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([PartProgress(True, 500, 212, 23.2 * 3600)], "submitted, 212 of 500 back, at the latest in 23 h"),
        ([PartProgress(True, 10, 0, 90 * 60)], "submitted, 0 of 10 back, at the latest in 90 min"),
        (
            [PartProgress(True, 10, 10, None), PartProgress(True, 5, 1, 60)],
            "submitted, 11 of 15 back, at the latest in 1 min",
        ),
        ([PartProgress(False, 10, 0, None)], "10 calls are being submitted"),
    ],
)
def test_the_sentence_says_what_is_back_and_when_the_rest_comes(parts: list[PartProgress], words: str) -> None:
    assert sentence(parts) == f"the provider's batch: {words}"
