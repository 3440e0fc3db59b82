"""When a run ends because its provider refuses every call, and when it must not."""

from __future__ import annotations

import pytest

from runner.errors import ProviderFailed
from runner.items.refusals import ALIKE, CERTAIN, Refusals

CERTAINLY = ProviderFailed("no such model", 404, "run")
ONE_QUESTION = ProviderFailed("too long", 400, "item")


def odd(number: int = 0, status: int = 400) -> ProviderFailed:
    return ProviderFailed(f"request {number:032x} is bad ({number})", status, "unknown")


def ends(errors: list[ProviderFailed], refusals: Refusals) -> int | None:
    """After how many errors the run ends."""
    return next((number for number, error in enumerate(errors, 1) if refusals.refused(error)), None)


@pytest.mark.parametrize(
    ("errors", "items", "after"),
    [
        pytest.param([CERTAINLY] * 20, 20, CERTAIN, id="certain"),
        pytest.param([CERTAINLY], 1, 1, id="one item"),
        pytest.param([odd(number) for number in range(20)], 20, ALIKE, id="alike but for numbers"),
        pytest.param([odd()] * 2, 2, 2, id="two items alike"),
        pytest.param([ONE_QUESTION] * 50, 50, None, id="each about its question"),
        pytest.param([odd(), odd(), odd(), odd(), ONE_QUESTION] * 4, 20, None, id="never enough in a row"),
        pytest.param([ProviderFailed(f"{'ab'[n % 2]}", 400) for n in range(20)], 20, None, id="not alike"),
        pytest.param([odd(status=500)] * 20, 20, None, id="server errors"),
        pytest.param([odd(status=429)] * 20, 20, None, id="too many requests"),
        pytest.param([ProviderFailed("refused", 401)] * 3, 3, 3, id="an older gateway says only the status"),
    ],
)
def test_a_run_ends_after(errors: list[ProviderFailed], items: int, after: int | None) -> None:
    assert ends(errors, Refusals(items)) == after


@pytest.mark.parametrize("error", [CERTAINLY, odd()], ids=["certain", "alike"])
def test_after_one_answer_nothing_ends_it(error: ProviderFailed) -> None:
    refusals = Refusals(20)
    refusals.answered()
    assert ends([error] * 20, refusals) is None


def test_results_of_earlier_attempts_are_answers_too_unless_it_is_certain() -> None:
    assert ends([odd()] * 20, Refusals(20, measured_before=True)) is None
    assert ends([CERTAINLY] * 20, Refusals(20, measured_before=True)) == CERTAIN
