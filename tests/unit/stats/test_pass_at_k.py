"""The unbiased estimator against its definition."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.stats.pass_at_k import mean_pass_at_k, pass_at_k, possible_k


@pytest.mark.parametrize(
    ("samples", "passed", "k", "expected"),
    [(1, 0, 1, 0.0), (1, 1, 1, 1.0), (10, 3, 1, 0.3), (10, 3, 10, 1.0), (5, 1, 2, 0.4), (200, 1, 100, 0.5), (5, 4, 2, 1.0)],
)
def test_known_values(samples: int, passed: int, k: int, expected: float) -> None:
    assert math.isclose(pass_at_k(samples, passed, k), expected, abs_tol=1e-12)


cases = st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))


@given(cases)
def test_it_is_one_minus_the_ratio_of_binomials(case: tuple[int, int, int]) -> None:
    n, c, k = case
    assert math.isclose(pass_at_k(n, c, k), 1 - math.comb(n - c, k) / math.comb(n, k), abs_tol=1e-9)


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_it_is_the_share_of_subsets_with_a_pass(case: tuple[int, int, int]) -> None:
    n, c, k = case
    subsets = list(itertools.combinations([True] * c + [False] * (n - c), k))
    assert math.isclose(pass_at_k(n, c, k), sum(map(any, subsets)) / len(subsets), abs_tol=1e-9)


@pytest.mark.parametrize(("samples", "passed", "k"), [(5, 6, 1), (5, -1, 1), (5, 1, 0), (5, 1, 6)])
def test_the_impossible_is_refused(samples: int, passed: int, k: int) -> None:
    with pytest.raises(ValueError):
        pass_at_k(samples, passed, k)


def test_a_k_is_possible_if_every_problem_has_enough_samples() -> None:
    assert possible_k([(10, 1), (12, 0)]) == [1, 2, 5, 10]
    assert possible_k([(3, 1), (10, 0)]) == [1, 2, 3]
    assert possible_k([(1, 1)]) == [1]
    assert possible_k([]) == []


def test_the_mean_goes_over_problems() -> None:
    assert mean_pass_at_k([(2, 2), (2, 0)], 1) == 0.5
