"""Tests whether a model changed between two sets of runs on the same problems. Exact, whatever the difficulty of the
problems.

If nothing changed, the newest runs of a problem are like any earlier runs in a row: swapping the two blocks changes nothing.
So, given the passes of all its blocks, each block is equally likely to be the newest. Nothing is assumed about a problem's
difficulty, nor that its results on different days are independent: a model that tends to repeat its answer yields blocks
that differ more, and the test allows for it. Problems whose blocks are all equal carry no information. Pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import add

from orchestrator.schedules.drift.memory import corrected, excess_of
from orchestrator.stats.intervals import LEVEL, Interval, critical_value

EXACT_UP_TO = 20_000_000
"""Number of steps above which a bound on the tails replaces the exact distribution; about two seconds."""
TILTS = tuple(0.01 * 1.3**step for step in range(28))
"""Exponents tried for the bound; each gives a valid bound."""
STAKES = (0.1, 0.2, 0.4, 0.8)
LEAST = 1e-300

Unit = tuple[int, int]
"""(results, passes) of one problem in one run, without errors that are not the model's fault."""


@dataclass(frozen=True)
class Tally:
    """Results of one problem, earlier (the reference) and later."""

    earlier: int
    earlier_passed: int
    later: int
    later_passed: int

    @property
    def change(self) -> float:
        return self.later_passed / self.later - self.earlier_passed / self.earlier


@dataclass(frozen=True)
class Blocks:
    """Passes of one problem in the newest block of runs, and in earlier blocks that have as many results."""

    newest: int
    earlier: tuple[int, ...]

    @property
    def values(self) -> tuple[int, ...]:
        return (self.newest, *self.earlier)


@dataclass(frozen=True)
class Record:
    """One problem in the runs of both sides, each newest first."""

    earlier: tuple[Unit, ...]
    later: tuple[Unit, ...]

    @property
    def tally(self) -> Tally:
        return Tally(*map(sum, zip(*self.earlier, strict=True)), *map(sum, zip(*self.later, strict=True)))

    def blocks(self) -> Blocks | None:
        """Blocks of runs with the same number of results; None if no block of the baseline is as long as the newest."""
        full = max(results for results, _ in self.later)
        newest = [passed for results, passed in self.later if results == full]
        before = [passed for results, passed in self.earlier if results == full]
        length = len(newest)
        earlier = tuple(sum(before[start : start + length]) for start in range(0, len(before) - length + 1, length))
        return Blocks(sum(newest), earlier) if earlier else None


def chances(records: Sequence[Record]) -> tuple[float, float]:
    """The probabilities of at most and of at least the observed passes in the newest runs, if nothing changed."""
    blocks = [block for record in records if (block := record.blocks()) is not None]
    if blocks and 2 * len(blocks) >= len(records):
        fewer, more = tails(blocks)
        excess = excess_of([block.earlier for block in blocks])
        return corrected(fewer, excess), corrected(more, excess)
    return bets([record.tally for record in records])


def tails(items: Iterable[Blocks]) -> tuple[float, float]:
    """Exact, by convolution. With one result in each of two blocks it is the exact McNemar test."""
    informative = [item for item in items if len(set(item.values)) > 1]
    if not informative:
        return 1.0, 1.0
    if _steps(informative) > EXACT_UP_TO:
        return bounds(informative)
    chance = [1.0]
    for item in informative:
        chance = _convolve(chance, item)
    observed = sum(item.newest - min(item.values) for item in informative)
    fewer, more = (min(1.0, max(LEAST, math.fsum(part))) for part in (chance[: observed + 1], chance[observed:]))
    return fewer, more


def bounds(items: Sequence[Blocks]) -> tuple[float, float]:
    """Upper bounds of the tails (Chernoff): exp(-b T) times the mean of exp(b T), for any b."""
    limits = []
    for sign in (-1, 1):
        lowest = min(
            math.fsum(_log_mean([sign * tilt * (value - item.newest) for value in item.values]) for item in items)
            for tilt in TILTS
        )
        limits.append(math.exp(min(0.0, max(lowest, math.log(LEAST)))))
    return limits[0], limits[1]


def bets(tallies: Sequence[Tally]) -> tuple[float, float]:
    """A bound for baselines too short for blocks: one over the gain of bets on the changes per problem.

    If nothing changed, the mean change of a problem is 0. It lies between -1 and 1, so no stake below 1 wins on average,
    however the results depend on each other.
    """
    limits = []
    for sign in (-1, 1):
        gains = [math.fsum(math.log1p(sign * stake * tally.change) for tally in tallies) for stake in STAKES]
        limits.append(math.exp(min(0.0, max(-_log_mean(gains), math.log(LEAST)))))
    return limits[0], limits[1]


def interval(tallies: Sequence[Tally], level: float = LEVEL) -> Interval:
    """Mean change per problem, with an interval from the spread of the changes over the problems.

    One imaginary differing pair, half of it each way, keeps the interval from collapsing if nothing differs.
    """
    if not tallies:
        return Interval(0.0, -1.0, 1.0)
    changes = [tally.change for tally in tallies]
    effect = math.fsum(changes) / len(changes)
    squares = math.fsum((change - effect) ** 2 for change in changes)
    half = critical_value(level) * math.sqrt(squares + 1) / len(changes)
    return Interval(effect, max(-1.0, effect - half), min(1.0, effect + half))


def spread_of(results: int, passed: int) -> float:
    """Unbiased estimate of p(1-p) from at least two results."""
    return passed * (results - passed) / (results * (results - 1))


def _steps(items: Sequence[Blocks]) -> int:
    """The number of steps of the convolution."""
    steps = length = 0
    for item in items:
        length += max(item.values) - min(item.values)
        steps += len(set(item.values)) * length
    return steps


def _convolve(chance: list[float], item: Blocks) -> list[float]:
    low, high = min(item.values), max(item.values)
    total: list[float] | None = None
    for value, count in Counter(item.values).items():
        weight = count / len(item.values)
        part = [0.0] * (value - low) + [probability * weight for probability in chance] + [0.0] * (high - value)
        total = part if total is None else list(map(add, total, part))
    assert total is not None
    return total


def _log_mean(logs: Sequence[float]) -> float:
    """Logarithm of the mean of numbers given by their logarithms."""
    top = max(logs)
    return top + math.log(math.fsum(math.exp(log - top) for log in logs) / len(logs))
