"""Several samples of a problem are one piece of evidence, not several."""

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.stats.clustered import clustered_interval, clustered_standard_error
from orchestrator.stats.intervals import wilson

clusters = st.lists(st.lists(st.sampled_from([0.0, 1.0]), max_size=6), max_size=30)


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=200))
def test_with_one_sample_each_it_is_the_ordinary_error_and_wilsons_interval(values: list[float]) -> None:
    share = sum(values) / len(values)
    ones = [[value] for value in values]
    assert math.isclose(clustered_standard_error(ones), math.sqrt(share * (1 - share) / len(values)), abs_tol=1e-12)
    ours, plain = clustered_interval(ones), wilson(sum(values), len(values))
    assert math.isclose(ours.low, plain.low, abs_tol=1e-9)
    assert math.isclose(ours.high, plain.high, abs_tol=1e-9)


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=50), st.integers(2, 10))
def test_repeating_the_same_answer_adds_nothing(values: list[float], times: int) -> None:
    once, often = clustered_interval([[v] for v in values]), clustered_interval([[v] * times for v in values])
    assert math.isclose(once.low, often.low, abs_tol=1e-9)
    assert math.isclose(once.high, often.high, abs_tol=1e-9)


@given(clusters)
def test_the_interval_is_sound(groups: list[list[float]]) -> None:
    interval = clustered_interval(groups)
    assert 0 <= interval.low <= interval.estimate <= interval.high <= 1


def test_nothing_gives_the_widest_interval() -> None:
    assert clustered_standard_error([[], []]) == 0
    assert (clustered_interval([]).low, clustered_interval([[]]).high) == (0, 1)


def test_it_covers_the_truth_where_the_naive_interval_does_not() -> None:
    chance = random.Random(4)
    ours = naive = 0
    for _ in range(600):
        skills = [chance.betavariate(0.5, 0.5) for _ in range(60)]
        groups = [[float(chance.random() < skill) for _ in range(8)] for skill in skills]
        interval, plain = clustered_interval(groups), wilson(sum(map(sum, groups)), 480)
        ours += interval.low <= 0.5 <= interval.high
        naive += plain.low <= 0.5 <= plain.high
    assert ours / 600 > 0.92
    assert naive / 600 < 0.8
