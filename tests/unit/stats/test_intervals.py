"""Wilson's and Newcombe's intervals, against published values and their own invariants."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.stats.intervals import critical_value, wilson, wilson_difference

# Newcombe 1998 (Statistics in Medicine 17, 857-872), table I, method 3.
PUBLISHED = [
    (81, 263, 0.2553, 0.3662),
    (15, 148, 0.0624, 0.1605),
    (0, 20, 0.0000, 0.1611),
    (1, 29, 0.0061, 0.1718),
]


@pytest.mark.parametrize(("successes", "trials", "low", "high"), PUBLISHED)
def test_wilson_gives_published_values(successes: int, trials: int, low: float, high: float) -> None:
    interval = wilson(successes, trials)
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


# Newcombe 1998 (Statistics in Medicine 17, 873-890), table II, method 10.
DIFFERENCES = [
    ((56, 70), (48, 80), 0.2000, 0.0524, 0.3339),
    ((9, 10), (3, 10), 0.6000, 0.1705, 0.8090),
    ((5, 56), (0, 29), 0.0893, -0.0381, 0.1926),
    ((0, 10), (0, 20), 0.0000, -0.1611, 0.2775),
    ((10, 10), (0, 10), 1.0000, 0.6075, 1.0000),
]


@pytest.mark.parametrize(("one", "other", "estimate", "low", "high"), DIFFERENCES)
def test_difference_gives_published_values(
    one: tuple[int, int], other: tuple[int, int], estimate: float, low: float, high: float
) -> None:
    interval = wilson_difference(one, other)
    assert (round(interval.estimate, 4), round(interval.low, 4), round(interval.high, 4)) == (estimate, low, high)


@given(st.integers(0, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.8, 0.95, 0.99]))
def test_the_estimate_lies_inside_and_the_bounds_in_the_unit_interval(case: tuple[int, int], level: float) -> None:
    interval = wilson(*case, level)
    assert 0 <= interval.low <= interval.estimate <= interval.high <= 1


@given(st.integers(0, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_success_and_failure_mirror_each_other(case: tuple[int, int]) -> None:
    successes, trials = case
    if trials:
        assert math.isclose(wilson(successes, trials).low, 1 - wilson(trials - successes, trials).high, abs_tol=1e-12)


def test_more_trials_narrow_it() -> None:
    widths = [wilson(n // 2, n).high - wilson(n // 2, n).low for n in (10, 100, 1000)]
    assert widths == sorted(widths, reverse=True)


def test_nothing_is_known_without_a_trial() -> None:
    assert (wilson(0, 0).low, wilson(0, 0).high) == (0, 1)
    assert (wilson_difference((0, 0), (1, 2)).low, wilson_difference((0, 0), (1, 2)).high) == (-1, 1)


@pytest.mark.parametrize(("successes", "trials"), [(-1, 5), (6, 5), (0, -1)])
def test_impossible_counts_are_refused(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="impossible"):
        wilson(successes, trials)


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_is_a_share(level: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        critical_value(level)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.9])
def test_it_covers_the_truth_about_as_often_as_it_says(share: float) -> None:
    chance = random.Random(20)
    covered = 0
    for _ in range(2000):
        interval = wilson(sum(chance.random() < share for _ in range(60)), 60)
        covered += interval.low <= share <= interval.high
    assert 0.92 < covered / 2000 < 0.98
