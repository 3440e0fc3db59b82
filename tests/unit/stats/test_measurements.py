from __future__ import annotations

import math
import random

import pytest

from orchestrator.stats.measurements import FigureVerdict, compare, summary
from orchestrator.stats.student import t_quantile

PUBLISHED = [(0.95, 1, 12.706), (0.95, 4, 2.776), (0.95, 30, 2.042), (0.99, 10, 3.169), (0.9, 2, 2.920), (0.95, 1e6, 1.960)]


@pytest.mark.parametrize(("level", "freedom", "expected"), PUBLISHED)
def test_quantiles_are_those_of_the_tables(level: float, freedom: float, expected: float) -> None:
    assert t_quantile(level, freedom) == pytest.approx(expected, abs=6e-4)


def test_the_interval_of_a_mean() -> None:
    found = summary([[10.0, 12.0, 11.0, 13.0]])
    assert found is not None
    assert (found.n, found.mean, found.median) == (4, 11.5, 11.5)
    relative = 3.182446 * 1.290994 / 2 / 11.5
    assert found.low == pytest.approx(11.5 * math.exp(-relative), abs=1e-4)
    assert found.high == pytest.approx(11.5 * math.exp(relative), abs=1e-4)
    assert summary([[], []]) is None
    alone = summary([[3.0]])
    assert alone is not None
    assert (alone.low, alone.high) == (None, None)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([0.1, 1.0], 0.55 * math.exp(-12.706205 * 0.45 / 0.55), 0.55 * math.exp(12.706205 * 0.45 / 0.55)),
        ([0.0, 1.0], 0.0, 0.5 + 12.706205 * 0.5),
        ([-1.0, 1.0], -12.706205, 12.706205),
        ([0.0, 0.0], 0.0, 0.0),
        ([2.0, 2.0], 2.0, 2.0),
    ],
    ids=["positive", "with a zero", "any sign", "nothing", "no spread"],
)
def test_an_interval_keeps_to_the_values_that_are_possible(values: list[float], low: float, high: float) -> None:
    found = summary([values])
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(low, rel=1e-5), pytest.approx(high, rel=1e-5))


@pytest.mark.parametrize(("sigma", "least"), [(0.05, 0.93), (0.3, 0.93), (0.8, 0.88)])
def test_a_mean_is_held_by_its_interval_as_often_as_is_said(sigma: float, least: float) -> None:
    """Log-normal times: Student's t alone holds the mean of the last, very uneven ones in 86 % only."""
    rng, held, rounds = random.Random(3), 0, 1000
    for _ in range(rounds):
        found = summary([[rng.lognormvariate(0, sigma) for _ in range(5)]])
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        assert 0 < found.low <= found.mean <= found.high
        held += found.low <= math.exp(sigma**2 / 2) <= found.high
    assert least < held / rounds < 0.975


@pytest.mark.parametrize(
    ("larger", "these", "verdict"),
    [
        (False, [2.0, 2.02, 1.98, 2.01], FigureVerdict.WORSE),
        (True, [2.0, 2.02, 1.98, 2.01], FigureVerdict.BETTER),
        (False, [0.5, 0.51, 0.49, 0.5], FigureVerdict.BETTER),
        (False, [1.0, 1.05, 0.96, 1.01], FigureVerdict.NO_DIFFERENCE),
        (False, [2.0], FigureVerdict.TOO_FEW),
        (False, [], FigureVerdict.TOO_FEW),
    ],
)
def test_verdicts(larger: bool, these: list[float], verdict: FigureVerdict) -> None:
    assert compare([these], [[1.0, 1.02, 0.98, 1.01]], larger_is_better=larger).verdict is verdict


def test_a_figure_without_any_spread_is_compared_as_it_is() -> None:
    assert compare([[5.0, 5.0]], [[5.0, 5.0]], larger_is_better=False).verdict is FigureVerdict.NO_DIFFERENCE
    assert compare([[5.0, 5.0]], [[4.0, 4.0]], larger_is_better=False).verdict is FigureVerdict.WORSE


def test_values_that_are_not_positive_are_compared_by_difference() -> None:
    found = compare([[0.0, 1.0, -1.0]], [[10.0, 11.0, 9.0]], larger_is_better=False)
    assert found.ratio is None
    assert found.difference is not None
    assert found.difference.estimate == -10
    assert found.verdict is FigureVerdict.BETTER


@pytest.mark.parametrize("these", [[1e100, 2e100], [-1e100, 1e100], [-1e-100, -3e-100], [5e-324, 1e-320]], ids=str)
@pytest.mark.parametrize("those", [[1e100, 1.5e100], [5e-324, 5e-324], [-2e-100, -3e-100]], ids=str)
def test_no_size_is_too_much(these: list[float], those: list[float]) -> None:
    for one, other in ((these, those), (those, these)):
        found = compare([one], [other], larger_is_better=True)
        assert found.ratio or found.difference
        alone = summary([one])
        assert alone is not None
        assert math.isfinite(alone.low or 0.0)
        assert math.isfinite(alone.high or 0.0)


def test_runs_that_differ_more_than_their_repeats_widen_the_interval() -> None:
    one_run = [[1.0, 1.01, 0.99, 1.2, 1.21, 1.19]]
    two_runs = [[1.0, 1.01, 0.99], [1.2, 1.21, 1.19]]
    base = [[1.5, 1.51, 1.49], [1.7, 1.71, 1.69]]
    alone, apart = (compare(these, base, larger_is_better=False) for these in (one_run, two_runs))
    assert alone.ratio is not None
    assert apart.ratio is not None
    assert apart.ratio.high - apart.ratio.low > alone.ratio.high - alone.ratio.low
    assert apart.verdict is FigureVerdict.NO_DIFFERENCE, "two runs a side that vary by a fifth show no third"


def test_a_ratio_is_held_by_its_interval_as_often_as_is_said() -> None:
    rng, held, rounds = random.Random(7), 0, 1000
    for _ in range(rounds):
        these = [[2.0 * math.exp(rng.gauss(0, 0.05)) for _ in range(5)]]
        those = [[math.exp(rng.gauss(0, 0.15)) for _ in range(7)]]
        found = compare(these, those, larger_is_better=False).ratio
        assert found is not None
        held += found.low <= 2.0 <= found.high
    assert 0.93 < held / rounds < 0.97
