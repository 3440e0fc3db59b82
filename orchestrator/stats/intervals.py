"""Confidence intervals for a share of successes. Pure arithmetic on counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """An estimate between two bounds."""

    estimate: float
    low: float
    high: float


def critical_value(level: float = LEVEL) -> float:
    """The half-width in standard errors: 1.96 for 95 %."""
    if not 0 < level < 1:
        raise ValueError(f"a confidence level lies between 0 and 1, got {level}")
    return NormalDist().inv_cdf(0.5 + level / 2)


def wilson(successes: float, trials: float, level: float = LEVEL, critical: float | None = None) -> Interval:
    """Wilson's score interval. Without trials it is 0 between 0 and 1.

    Accepts fractions, so that an effective number of trials can be used, and another critical value than the normal one.
    """
    if trials < 0 or not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials is impossible")
    if trials == 0:
        return Interval(0.0, 0.0, 1.0)
    z2 = (critical_value(level) if critical is None else critical) ** 2
    share = successes / trials
    centre = (successes + z2 / 2) / (trials + z2)
    half = math.sqrt(z2) * math.sqrt(trials * share * (1 - share) + z2 / 4) / (trials + z2)
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Interval(share, min(low, share), max(high, share))


def wilson_difference(first: tuple[float, float], other: tuple[float, float], level: float = LEVEL) -> Interval:
    """Newcombe's interval for the difference `one - other` of two independent shares, each (successes, trials)."""
    if not first[1] or not other[1]:
        return Interval(0.0, -1.0, 1.0)
    return independent_difference(wilson(*first, level), wilson(*other, level))


def independent_difference(first: Interval, other: Interval) -> Interval:
    """The same from the intervals of two independent estimates between 0 and 1."""
    difference = first.estimate - other.estimate
    low = difference - math.hypot(first.estimate - first.low, other.high - other.estimate)
    high = difference + math.hypot(first.high - first.estimate, other.estimate - other.low)
    return Interval(difference, max(-1.0, low), min(1.0, high))
