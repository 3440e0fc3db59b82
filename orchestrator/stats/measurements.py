"""Repeated measurements: the mean with its interval, and whether two sets differ. Pure.

Each set is one sequence per run. Repeats of one run share its container and time, so two runs may differ by more than their
repeats suggest: the larger of both errors is used.

Positive values are compared as a ratio of geometric means, by Welch's t interval on their logarithms; other values as a
difference of means. The interval of a mean of positive values is Student's t on the logarithmic scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, median

from orchestrator.stats.intervals import LEVEL, Interval
from orchestrator.stats.student import t_quantile

Runs = Sequence[Sequence[float]]
ENOUGH = 2
LARGEST_EXPONENT = 230.0
"""A factor of 1e100 means nothing any more, and any figure times it is still finite."""


class FigureVerdict(StrEnum):
    """The result of a comparison, from the point of view of the compared set."""

    BETTER = "better"  #: the whole interval lies on the good side
    WORSE = "worse"  #: the whole interval lies on the bad side
    NO_DIFFERENCE = "no_difference"  #: the interval includes "the same": a difference was not detected, nor excluded
    TOO_FEW = "too_few"  #: fewer than two repeats on a side


@dataclass(frozen=True)
class Summary:
    n: int
    mean: float
    median: float
    low: float | None
    high: float | None
    """Of the mean; None with a single repeat."""


@dataclass(frozen=True)
class FigureComparison:
    verdict: FigureVerdict
    ratio: Interval | None
    """This set divided by the other."""
    difference: Interval | None
    """Used if there is no ratio."""


def summary(runs: Runs, level: float = LEVEL) -> Summary | None:
    values = _all(runs)
    if not values:
        return None
    mean, middle = fmean(values), median(values)
    if len(values) < ENOUGH:
        return Summary(len(values), mean, middle, None, None)
    variance, freedom = _error(runs)
    half = t_quantile(level, freedom) * math.sqrt(variance)
    low, high = _around(mean, half, min(values))
    return Summary(len(values), mean, middle, low, high)


def _around(mean: float, half: float, smallest: float) -> tuple[float, float]:
    """The interval of a mean with half-width `half` by Student's t. Values that are never negative get no negative bound."""
    if smallest > 0:
        factor = math.exp(min(half / mean, LARGEST_EXPONENT))
        return mean / factor, mean * factor
    low = mean - half
    return (max(0.0, low) if smallest == 0 else low), mean + half


def compare(these: Runs, those: Runs, *, larger_is_better: bool, level: float = LEVEL) -> FigureComparison:
    first, other = _all(these), _all(those)
    if min(len(first), len(other)) < ENOUGH:
        return FigureComparison(FigureVerdict.TOO_FEW, None, None)
    if min(first) > 0 and min(other) > 0:
        logs = _welch(_logs(these), _logs(those), level)
        ratio = Interval(_exp(logs.estimate), _exp(logs.low), _exp(logs.high))
        return FigureComparison(_verdict(logs, larger_is_better), ratio, None)
    difference = _welch(these, those, level)
    return FigureComparison(_verdict(difference, larger_is_better), None, difference)


def _welch(these: Runs, those: Runs, level: float) -> Interval:
    (first, free_one), (other, free_other) = _error(these), _error(those)
    estimate = fmean(_all(these)) - fmean(_all(those))
    variance = first + other
    if variance == 0:
        return Interval(estimate, estimate, estimate)
    share = first / variance  # independent of the unit: squares of very small variances would underflow
    freedom = 1 / (share**2 / free_one + (1 - share) ** 2 / free_other)
    half = t_quantile(level, round(freedom, 6)) * math.sqrt(variance)
    return Interval(estimate, estimate - half, estimate + half)


def _error(runs: Runs) -> tuple[float, float]:
    """The variance of the mean, and its degrees of freedom."""
    filled = [run for run in runs if run]
    values = _all(filled)
    count, mean = len(values), fmean(values)
    alone = math.fsum((value - mean) ** 2 for value in values) / (count - 1) / count
    if len(filled) < ENOUGH:
        return alone, count - 1
    clusters = len(filled)
    between = math.fsum(math.fsum(value - mean for value in run) ** 2 for run in filled) / count**2
    between *= clusters / (clusters - 1)
    return (between, clusters - 1) if between > alone else (alone, count - 1)


def _verdict(interval: Interval, larger_is_better: bool) -> FigureVerdict:
    if interval.low <= 0 <= interval.high:
        return FigureVerdict.NO_DIFFERENCE
    return FigureVerdict.BETTER if (interval.estimate > 0) == larger_is_better else FigureVerdict.WORSE


def _all(runs: Runs) -> list[float]:
    return [value for run in runs for value in run]


def _logs(runs: Runs) -> list[list[float]]:
    return [[math.log(value) for value in run] for run in runs]


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))
