"""Has the model changed between two sets of runs on the same problems? Exact, without knowing how hard any problem is.

If nothing changed, the passes of a problem are spread over its results at random: given how many there are in total, the
number among the later results is hypergeometric, whatever the problem's own chance is. So problems that were always or never
solved say nothing, and no assumption about difficulty is needed. All functions here use only that. Pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from orchestrator.stats.intervals import LEVEL, Interval, critical_value

BETS = (0.25, 0.5, 1.0, 2.0)
"""Shifts of the log odds that the evidence bets on, from a slight change to a total one."""
EXACT_UP_TO = 5000
"""Results beyond which the exact distribution is replaced by a bound that is valid too."""


@dataclass(frozen=True)
class Tally:
    """Results of one problem, earlier (the reference) and later. Only results that are the model's own."""

    earlier: int
    earlier_passed: int
    later: int
    later_passed: int

    @property
    def results(self) -> int:
        return self.earlier + self.later

    @property
    def passed(self) -> int:
        return self.earlier_passed + self.later_passed

    @property
    def change(self) -> float:
        return self.later_passed / self.later - self.earlier_passed / self.earlier


def usable(tallies: Iterable[Tally]) -> list[Tally]:
    """Those with results on both sides."""
    return [tally for tally in tallies if tally.earlier and tally.later]


def exact_p_value(tallies: Sequence[Tally]) -> float:
    """Two-sided: twice the smaller tail. With one result on each side this is the exact McNemar test."""
    groups = Counter((tally.results, tally.passed, tally.later) for tally in tallies if 0 < tally.passed < tally.results)
    informative = sum(later * count for (_, _, later), count in groups.items())
    if not informative:
        return 1.0
    if informative > EXACT_UP_TO:
        return min(1.0, 2 / max(math.exp(min(log_evidence(tallies, direction), 700.0)) for direction in (-1, 1)))
    chances = [1.0]
    for (results, passed, later), count in groups.items():
        part = [math.exp(each) for each in _log_chances(results, passed, later)]
        for _ in range(count):
            chances = _convolve(chances, part)
    lowest = sum(_least(results, passed, later) * count for (results, passed, later), count in groups.items())
    seen = sum(tally.later_passed for tally in tallies if 0 < tally.passed < tally.results) - lowest
    below, above = math.fsum(chances[: seen + 1]), math.fsum(chances[seen:])
    return min(1.0, 2 * min(below, above))


def log_evidence(tallies: Sequence[Tally], direction: int) -> float:
    """Logarithm of an e-value against "no change": its mean is at most 1 if nothing changed.

    `direction` -1 bets on fewer passes later, +1 on more. The mean over several sizes of the change, each a likelihood
    ratio of the conditional distributions.
    """
    groups = Counter((tally.results, tally.passed, tally.later) for tally in tallies if 0 < tally.passed < tally.results)
    passes = sum(tally.later_passed for tally in tallies if 0 < tally.passed < tally.results)
    logs = [
        direction * bet * passes - math.fsum(count * log_mgf(*group, direction * bet) for group, count in groups.items())
        for bet in BETS
    ]
    return log_mean(logs)


def log_mean(logs: Sequence[float]) -> float:
    """Logarithm of the mean of numbers given by their logarithms."""
    top = max(logs)
    return top + math.log(math.fsum(math.exp(each - top) for each in logs) / len(logs))


@lru_cache(maxsize=100_000)
def log_mgf(results: int, passed: int, later: int, shift: float) -> float:
    """Logarithm of the mean of exp(shift x passes among the later results), if nothing changed."""
    least = _least(results, passed, later)
    logs = [each + shift * (least + index) for index, each in enumerate(_log_chances(results, passed, later))]
    top = max(logs)
    return top + math.log(math.fsum(math.exp(each - top) for each in logs))


def interval(tallies: Sequence[Tally], level: float = LEVEL) -> Interval:
    """Mean change per problem, with an interval that covers chance in the answers, not the choice of problems.

    The variance of a problem comes from all its results; one imaginary pair that differs, half of it each way, keeps the
    interval honest where nothing differs at all.
    """
    if not tallies:
        return Interval(0.0, -1.0, 1.0)
    effect = math.fsum(tally.change for tally in tallies) / len(tallies)
    variance = math.fsum(spread_of(tally.results, tally.passed) * (1 / tally.earlier + 1 / tally.later) for tally in tallies)
    half = critical_value(level) * math.sqrt(variance + 1) / (len(tallies) + 2)
    return Interval(effect, max(-1.0, effect - half), min(1.0, effect + half))


def spread_of(results: int, passed: int) -> float:
    """Unbiased estimate of p(1-p) from at least two results."""
    return passed * (results - passed) / (results * (results - 1))


def _least(results: int, passed: int, later: int) -> int:
    return max(0, passed - (results - later))


@lru_cache(maxsize=20_000)
def _log_chances(results: int, passed: int, later: int) -> tuple[float, ...]:
    """Hypergeometric: of `results` with `passed` passes, how many are among the `later`; from the least possible on."""
    low, high = _least(results, passed, later), min(passed, later)
    whole = _log_choose(results, later)
    return tuple(
        _log_choose(passed, count) + _log_choose(results - passed, later - count) - whole for count in range(low, high + 1)
    )


def _log_choose(n: int, k: int) -> float:
    return math.log(math.comb(n, k)) if n <= 200 else math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _convolve(one: Sequence[float], other: Sequence[float]) -> list[float]:
    result = [0.0] * (len(one) + len(other) - 1)
    for shift, weight in enumerate(other):
        for index, value in enumerate(one, shift):
            result[index] += value * weight
    return result
