"""Paired comparison of two runs on the same problems: only problems on which they differ say which is better.

Passes and failures are compared by the exact McNemar test, values between 0 and 1 by swapping the two runs of each problem:
if they are equally good, either could have had either value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from orchestrator.stats.exchangeable import Blocks, tails
from orchestrator.stats.intervals import LEVEL, Interval, wilson
from orchestrator.stats.student import t_quantile

SWAPPED_UP_TO = 150
"""Differing problems above which the distribution over all swaps is as good as normal, and the convolution slow."""
DECIMALS = 12


@dataclass(frozen=True)
class Pairs:
    """Counts of problems by the results of both sides."""

    both: int
    only_first: int
    only_second: int
    neither: int

    @property
    def total(self) -> int:
        return self.both + self.only_first + self.only_second + self.neither

    @classmethod
    def of(cls, outcomes: Sequence[tuple[bool, bool]]) -> Pairs:
        return cls(
            both=sum(a and b for a, b in outcomes),
            only_first=sum(a and not b for a, b in outcomes),
            only_second=sum(b and not a for a, b in outcomes),
            neither=sum(not a and not b for a, b in outcomes),
        )


def exact_mcnemar(only_first: int, only_second: int) -> float:
    """The two-sided p-value: the probability of a split at least this uneven if both sides are equally good."""
    differing = only_first + only_second
    if differing == 0:
        return 1.0
    tail = ways = 1
    for i in range(min(only_first, only_second)):
        ways = ways * (differing - i) // (i + 1)
        tail += ways
    return min(1.0, 2 * tail / (1 << differing))


def swap_test(differences: Sequence[float]) -> float:
    """The two-sided p-value of differences between two runs, one per problem: the probability of a sum at least this far
    from 0 if each difference could have had either sign.
    """
    signed = [difference for value in differences if (difference := round(value, DECIMALS))]
    if not signed:
        return 1.0
    if len(signed) > SWAPPED_UP_TO:
        distance = abs(math.fsum(signed)) / math.sqrt(math.fsum(value * value for value in signed))
        return max(2 * NormalDist().cdf(-distance), 1e-300)
    fewer, more = tails(Blocks(float(value), (-float(value),)) for value in signed)
    return min(1.0, 2 * min(fewer, more))


def mean_difference(differences: Sequence[float], level: float = LEVEL) -> Interval:
    """The mean of differences between -1 and 1, one per problem, with Student's interval.

    One imaginary problem that differs as much as the one that differs most, half of it each way, keeps the interval from
    collapsing if the differences agree by chance.
    """
    count = len(differences)
    if count == 0:
        return Interval(0.0, -1.0, 1.0)
    mean = math.fsum(differences) / count
    if count == 1:
        return Interval(mean, -1.0, 1.0)
    squares = math.fsum((value - mean) ** 2 for value in differences) * count / (count - 1)
    imaginary = max(value * value for value in differences) or 1.0
    half = t_quantile(level, count - 1) * math.sqrt(squares + imaginary) / count
    return Interval(mean, max(-1.0, mean - half), min(1.0, mean + half))


def holm_adjusted(p_values: Sequence[float]) -> list[float]:
    """Adjusts each p-value for their number: it is below a level exactly if Holm's procedure rejects at that level."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, most = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        most = max(most, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = most
    return adjusted


def paired_difference(pairs: Pairs, level: float = LEVEL) -> Interval:
    """Newcombe's interval for `first - second` of two shares measured on the same problems."""
    total = pairs.total
    if total == 0:
        return Interval(0.0, -1.0, 1.0)
    first = wilson(pairs.both + pairs.only_first, total, level)
    second = wilson(pairs.both + pairs.only_second, total, level)
    phi = _correlation(pairs)
    difference = (pairs.only_first - pairs.only_second) / total
    down = _root_of_sum(first.estimate - first.low, second.high - second.estimate, phi)
    up = _root_of_sum(first.high - first.estimate, second.estimate - second.low, phi)
    return Interval(difference, max(-1.0, difference - down), min(1.0, difference + up))


def _correlation(pairs: Pairs) -> float:
    """The phi coefficient of the two sides, continuity-corrected as in Newcombe's method 10; 0 if a side never varies."""
    a, b, c, d = pairs.both, pairs.only_first, pairs.only_second, pairs.neither
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    if margins == 0:
        return 0.0
    product = float(a * d - b * c)
    if product > 0:
        product = max(product - pairs.total / 2, 0.0)
    return product / math.sqrt(margins)


def _root_of_sum(x: float, y: float, phi: float) -> float:
    return math.sqrt(max(0.0, x * x - 2 * phi * x * y + y * y))
