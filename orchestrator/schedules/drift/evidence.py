"""Tests whether a model changed between two sets of runs on the same problems. Exact, whatever the difficulty of the
problems.

If nothing changed, the newest runs of a problem are like any earlier runs in a row: swapping the two blocks changes nothing.
So, given the passes of all its blocks, each block is equally likely to be the newest. Nothing is assumed about a problem's
difficulty, nor that its results on different days are independent: a model that tends to repeat its answer yields blocks
that differ more, and the test allows for it. Problems whose blocks are all equal carry no information. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.schedules.drift.memory import corrected, excess_of
from orchestrator.stats.exchangeable import LEAST, Blocks, log_mean, tails
from orchestrator.stats.intervals import LEVEL, Interval, critical_value

STAKES = (0.1, 0.2, 0.4, 0.8)

DECIMALS = 9
"""Sums that differ by less are equal."""

Unit = tuple[int, float]
"""(results, sum of their values) of one problem in one run, without errors that are not the model's fault.

The sum is a whole number, the number of passes, unless a result has a value between 0 and 1."""


@dataclass(frozen=True)
class Tally:
    """Results of one problem, earlier (the reference) and later."""

    earlier: int
    earlier_passed: float
    later: int
    later_passed: float

    @property
    def change(self) -> float:
        return self.later_passed / self.later - self.earlier_passed / self.earlier

    @property
    def fractional(self) -> bool:
        return not (isinstance(self.earlier_passed, int) and isinstance(self.later_passed, int))


@dataclass(frozen=True)
class Record:
    """One problem in the runs of both sides, each newest first."""

    earlier: tuple[Unit, ...]
    later: tuple[Unit, ...]

    @property
    def tally(self) -> Tally:
        return Tally(*_total(self.earlier), *_total(self.later))

    def blocks(self) -> Blocks | None:
        """Blocks of runs with the same number of results; None if no block of the baseline is as long as the newest."""
        full = max(results for results, _ in self.later)
        newest = [passed for results, passed in self.later if results == full]
        before = [passed for results, passed in self.earlier if results == full]
        length = len(newest)
        earlier = tuple(_sum(before[start : start + length]) for start in range(0, len(before) - length + 1, length))
        return Blocks(_sum(newest), earlier) if earlier else None


def chances(records: Sequence[Record]) -> tuple[float, float]:
    """The probabilities of at most and of at least the observed passes in the newest runs, if nothing changed."""
    blocks = [block for record in records if (block := record.blocks()) is not None]
    if blocks and 2 * len(blocks) >= len(records):
        fewer, more = tails(blocks)
        excess = excess_of([block.earlier for block in blocks])
        return corrected(fewer, excess), corrected(more, excess)
    return bets([record.tally for record in records])


def bets(tallies: Sequence[Tally]) -> tuple[float, float]:
    """A bound for baselines too short for blocks: one over the gain of bets on the changes per problem.

    If nothing changed, the mean change of a problem is 0. It lies between -1 and 1, so no stake below 1 wins on average,
    however the results depend on each other.
    """
    limits = []
    for sign in (-1, 1):
        gains = [math.fsum(math.log1p(sign * stake * tally.change) for tally in tallies) for stake in STAKES]
        limits.append(math.exp(min(0.0, max(-log_mean(gains), math.log(LEAST)))))
    return limits[0], limits[1]


def interval(tallies: Sequence[Tally], level: float = LEVEL) -> Interval:
    """Mean change per problem, with an interval from the spread of the changes over the problems.

    One imaginary differing pair, half of it each way, keeps the interval from collapsing if nothing differs. Between values
    that are not pass or fail, it differs as much as the pair that differs most.
    """
    if not tallies:
        return Interval(0.0, -1.0, 1.0)
    changes = [tally.change for tally in tallies]
    effect = math.fsum(changes) / len(changes)
    squares = math.fsum((change - effect) ** 2 for change in changes)
    imaginary = max(change**2 for change in changes) if any(tally.fractional for tally in tallies) else 0.0
    half = critical_value(level) * math.sqrt(squares + (imaginary or 1)) / len(changes)
    return Interval(effect, max(-1.0, effect - half), min(1.0, effect + half))


def spread_of(results: int, total: float, squares: float) -> float:
    """Unbiased estimate of the variance of a result, from at least two results: their number, sum and sum of squares."""
    return max(0.0, (results * squares - total * total) / (results * (results - 1)))


def _total(units: Sequence[Unit]) -> tuple[int, float]:
    return sum(results for results, _ in units), _sum([value for _, value in units])


def _sum(values: Sequence[float]) -> float:
    """A whole number if all are."""
    return sum(values) if all(isinstance(value, int) for value in values) else round(math.fsum(values), DECIMALS)
