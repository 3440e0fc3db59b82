"""Paired comparisons against published values and symmetry."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.stats.paired import Pairs, exact_mcnemar, holm_adjusted, paired_difference

counts = st.integers(0, 80)
tables = st.builds(Pairs, counts, counts, counts, counts)


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        (0, 0, 1.0),
        (5, 5, 1.0),
        (1, 0, 1.0),
        (6, 0, 0.03125),
        (0, 10, 0.001953125),
        (2, 8, 0.109375),
        (10, 25, 0.01667385),
    ],
)
def test_exact_p_values(first: int, second: int, p: float) -> None:
    assert math.isclose(exact_mcnemar(first, second), p, rel_tol=1e-3)


def test_thousands_of_differences_do_not_overflow() -> None:
    assert exact_mcnemar(5000, 5200) < 0.05


def test_difference_gives_known_values() -> None:
    interval = paired_difference(Pairs(both=36, only_first=12, only_second=2, neither=0))
    assert (round(interval.estimate, 4), round(interval.low, 4), round(interval.high, 4)) == (0.2, 0.0569, 0.3404)


def test_the_difference_covers_the_truth_about_as_often_as_it_says() -> None:
    chance = random.Random(3)
    covered = 0
    for _ in range(1500):
        outcomes = []
        for _ in range(80):
            easy = chance.random() < 0.6
            outcomes.append((chance.random() < (0.9 if easy else 0.2), chance.random() < (0.8 if easy else 0.1)))
        interval = paired_difference(Pairs.of(outcomes))
        covered += interval.low <= 0.1 <= interval.high
    assert 0.92 < covered / 1500 < 0.99


@given(tables)
def test_exchanging_the_sides_mirrors_everything(pairs: Pairs) -> None:
    other = Pairs(pairs.both, pairs.only_second, pairs.only_first, pairs.neither)
    one, two = paired_difference(pairs), paired_difference(other)
    assert math.isclose(one.low, -two.high, abs_tol=1e-9)
    assert exact_mcnemar(pairs.only_first, pairs.only_second) == exact_mcnemar(pairs.only_second, pairs.only_first)


@given(tables)
def test_the_interval_holds_its_estimate(pairs: Pairs) -> None:
    interval = paired_difference(pairs)
    assert -1 <= interval.low <= interval.estimate + 1e-9
    assert interval.estimate - 1e-9 <= interval.high <= 1


def test_pairs_are_counted() -> None:
    assert Pairs.of([(True, True), (True, False), (False, True), (False, False), (True, False)]) == Pairs(1, 2, 1, 1)


def test_equal_sides_are_seldom_called_different_and_unequal_ones_often() -> None:
    chance = random.Random(9)

    def alarms(gain: float) -> float:
        hits = 0
        for _ in range(400):
            pairs = [(chance.random() < 0.15, chance.random() < 0.15 + gain) for _ in range(200)]
            counted = Pairs.of(pairs)
            hits += exact_mcnemar(counted.only_first, counted.only_second) < 0.05
        return hits / 400

    assert alarms(0.0) <= 0.06
    assert alarms(0.2) > 0.95


def test_holm_corrects_for_the_number_of_comparisons() -> None:
    assert holm_adjusted([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])  # as R's p.adjust gives
    assert holm_adjusted([0.5, 0.9]) == [1.0, 1.0]
    assert holm_adjusted([]) == []
