"""95 % intervals hold the truth as often as they say, and exact tests never exceed their level. Seeded.

`python -m tests.bench.coverage` is the long version.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from orchestrator.stats.paired import exact_mcnemar
from tests.bench.coverage import clustered_covers, difference_covers, paired_covers, wilson_covers


@pytest.mark.parametrize("trials", [20, 50, 100, 400])
def test_wilson_covers_in_94_to_96_of_100(trials: int) -> None:
    """Averaged over chances between 0 and 1, 10,000 simulations."""
    assert 0.94 <= wilson_covers(trials, 10_000, np.random.default_rng(trials)) <= 0.96


def test_other_intervals_cover() -> None:
    rng = np.random.default_rng(5)
    assert 0.93 <= difference_covers(50, 2000, rng) <= 0.97
    assert 0.925 <= clustered_covers(60, 8, 1000, rng) <= 0.97
    assert 0.93 <= paired_covers(100, 500, rng) <= 0.98


def test_mcnemar_never_exceeds_its_level() -> None:
    """Every split of up to 60 differing problems, each side equally likely."""
    for differing in range(1, 61):
        ways = [(exact_mcnemar(first, differing - first), math.comb(differing, first)) for first in range(differing + 1)]
        for level in (0.001, 0.01, 0.05, 0.1, 0.2):
            assert sum(count for p_value, count in ways if p_value <= level) <= level * 2**differing
