"""Values between 0 and 1: intervals of their mean and paired tests, against brute force and by simulation. Seeded."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from orchestrator.stats import exchangeable, paired
from orchestrator.stats.clustered import clustered_interval
from orchestrator.stats.exchangeable import Blocks, tails
from orchestrator.stats.intervals import wilson
from orchestrator.stats.paired import exact_mcnemar, mean_difference, swap_test
from tests.bench.coverage import SHAPES, mean_covers, mean_difference_covers


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("problems", [10, 50])
def test_the_interval_of_a_mean_covers(shape: str, problems: int) -> None:
    """At least nearly as often as it says, and for other than nearly constant values not much more often."""
    covered = mean_covers(shape, problems, 1, 600, np.random.default_rng(problems))
    assert covered >= 0.925
    if problems == 50 and shape != "narrow":
        assert covered <= 0.985


def test_samples_of_one_problem_are_not_independent() -> None:
    assert 0.925 <= mean_covers("even", 40, 6, 600, np.random.default_rng(1)) <= 0.985


def test_values_that_vary_little_need_a_narrow_interval() -> None:
    """As a share of passes, 0.8 of 50 problems would be known to 11 points."""
    rng = random.Random(2)
    interval = clustered_interval([[min(1.0, max(0.0, rng.gauss(0.8, 0.03)))] for _ in range(50)])
    share = wilson(40, 50)
    assert interval.high - interval.low < (share.high - share.low) / 4


@pytest.mark.parametrize(
    "values", [[0.5], [0.5, 0.5], [0.0, 0.5], [1.0, 1.0, 0.999], [1e-9] * 30, [1.0] * 20 + [0.5], [0.3] * 400]
)
def test_an_interval_always_holds_its_estimate_and_stays_within_0_and_1(values: list[float]) -> None:
    interval = clustered_interval([[value] for value in values])
    assert interval.estimate == pytest.approx(sum(values) / len(values))
    assert 0 <= interval.low <= interval.estimate <= interval.high <= 1
    assert interval.high > interval.low


def swapped_p_value(differences: list[float]) -> float:
    """By trying every choice of signs."""
    observed = math.fsum(differences)
    sums = [
        math.fsum(sign * value for sign, value in zip(signs, differences, strict=True))
        for signs in itertools.product((-1, 1), repeat=len(differences))
    ]
    fewer = sum(total <= observed + 1e-9 for total in sums) / len(sums)
    more = sum(total >= observed - 1e-9 for total in sums) / len(sums)
    return min(1.0, 2 * min(fewer, more))


@pytest.mark.parametrize("seed", range(6))
def test_the_swap_test_is_what_all_swaps_give(seed: int) -> None:
    rng = random.Random(seed)
    differences = [rng.choice([-0.4, -0.2, 0.1, 0.3, 0.5, 0.7]) for _ in range(11)]
    assert swap_test(differences) == pytest.approx(swapped_p_value(differences))
    uneven = [difference * rng.uniform(0.9, 1) for difference in differences]
    assert swap_test(uneven) == pytest.approx(swapped_p_value(uneven), abs=0.01)


def test_the_swap_test_of_passes_and_failures_is_mcnemars() -> None:
    assert swap_test([-1.0] * 9 + [1.0] * 2 + [0.0] * 30) == pytest.approx(exact_mcnemar(9, 2))


def test_the_swap_test_never_exceeds_its_level() -> None:
    """Over every choice of signs, also on the rounded grid."""
    sizes = [0.013, 0.11, 0.2, 0.25, 0.333, 0.48, 0.5, 0.77, 0.9, 1.0]
    p_values = [
        swap_test([sign * size for sign, size in zip(signs, sizes, strict=True)])
        for signs in itertools.product((-1, 1), repeat=len(sizes))
    ]
    for level in (0.005, 0.01, 0.05, 0.1, 0.2):
        assert sum(p_value <= level for p_value in p_values) <= level * len(p_values) + 1e-9


def test_many_problems_are_compared_as_exactly_and_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    for number, mean in ((200, 0.03), (400, 0.012)):
        differences = [rng.gauss(mean, 0.15) for _ in range(number)]
        quick = swap_test(differences)
        with monkeypatch.context() as patched:
            patched.setattr(paired, "SWAPPED_UP_TO", 1000)
            patched.setattr(exchangeable, "AFFORDABLE", 10**9)
            assert quick == pytest.approx(swap_test(differences), rel=0.05)


def test_the_swap_test_finds_a_difference_that_passes_cannot_show() -> None:
    """A drop of 4 points in values that vary by 10: nobody passes before or after."""
    rng = random.Random(6)
    assert swap_test([rng.gauss(-0.04, 0.1) for _ in range(100)]) < 0.01
    assert swap_test([0.0] * 100) == 1.0


def test_the_grid_does_not_depend_on_which_block_is_the_newest() -> None:
    rows = [(0.1, 0.35, 0.8), (0.0, 0.01, 0.02), (0.5, 0.5, 0.9)]
    chances = []
    for newest in itertools.product(range(3), repeat=3):
        blocks = [
            Blocks(row[first], tuple(value for at, value in enumerate(row) if at != first))
            for row, first in zip(rows, newest, strict=True)
        ]
        chances.append(tails(blocks)[0])
    for level in (1 / 27, 3 / 27, 9 / 27, 0.5):
        assert sum(chance <= level + 1e-12 for chance in chances) <= level * 27 + 1e-9


def test_the_interval_of_a_difference_covers() -> None:
    for problems in (20, 100):
        assert 0.93 <= mean_difference_covers(problems, 600, np.random.default_rng(problems)) <= 0.99
    assert mean_difference([]).low == -1
    assert (mean_difference([0.25]).low, mean_difference([0.25]).high) == (-1, 1)
    assert mean_difference([0.0] * 50).high > 0
