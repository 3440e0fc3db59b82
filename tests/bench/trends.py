"""What a measured curve says: the exponent of its growth, and whether a series over time grows beyond its noise. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import linear_regression, median

BLOCKS = 24
"""A long series is looked at as this many medians of neighbouring samples, which are less dependent on each other."""
SIGNIFICANT = 2.58
NOTICEABLE = 0.03
"""A change of less than this share of the level over the whole time is none."""

Samples = Sequence[tuple[float, float]]


def exponent(points: Samples) -> float:
    """The k of y = c * x^k by least squares of the logarithms: 1 is proportional, 0 does not depend on x."""
    return linear_regression([math.log(x) for x, _ in points], [math.log(y) for _, y in points]).slope


@dataclass(frozen=True)
class Drift:
    """A series over time: its typical value, its robust slope, and whether that is growth."""

    level: float
    per_hour: float
    grows: bool

    def words(self, unit: str) -> str:
        verdict = "grows" if self.grows else "does not grow"
        return f"{verdict}: median {self.level:.4g} {unit}, slope {self.per_hour:+.3g} {unit} an hour"


def drift(lives: Sequence[Samples]) -> Drift:
    """The slope of Theil and Sen over the pairs within each life, times in seconds, and Kendall's test whether pairs rise.

    A life is the time between two restarts: what a process holds begins anew, so pairs across a restart say nothing.
    """
    total = sum(len(life) for life in lives)
    blocks = [_blocks(life, max(3, round(BLOCKS * len(life) / total))) for life in lives if len(life) >= 3]
    slopes, rises, variance = [], 0, 0.0
    for life in blocks:
        for (x, y), (later, value) in combinations(life, 2):
            slopes.append((value - y) / (later - x))
            rises += (value > y) - (value < y)
        count = len(life)
        variance += count * (count - 1) * (2 * count + 5) / 18
    level = median(y for life in lives for _, y in life)
    if not slopes:
        return Drift(level, 0.0, False)
    slope = median(slopes)
    longest = max(life[-1][0] - life[0][0] for life in blocks)
    significant = rises > SIGNIFICANT * math.sqrt(variance)
    return Drift(level, 3600 * slope, significant and slope * longest > NOTICEABLE * abs(level))


def _blocks(life: Samples, count: int) -> list[tuple[float, float]]:
    count = min(count, len(life))
    parts = [life[len(life) * index // count : len(life) * (index + 1) // count] for index in range(count)]
    return [(median(x for x, _ in part), median(y for _, y in part)) for part in parts]
