"""Exact tests of whether the first of several blocks of results is like the others, problem by problem. Pure.

If nothing distinguishes the blocks of a problem, each of its values is equally likely to be the first. The distribution of
the sum of first values follows by convolution, whatever the values are. Values that are not whole numbers are rounded to a
grid that does not depend on which block is the first, so the test stays exact: only its statistic is rounded.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import add

EXACT_UP_TO = 20_000_000
"""Number of steps above which a bound on the tails replaces the exact distribution; about two seconds."""
GRIDS = (300, 100, 30, 10)
"""Numbers of levels between the smallest and the largest value of a problem; the finest affordable one is used."""
MOST_PARTS = 120
"""Values that are all multiples of one over a number up to this, such as halves or hundredths, need no rounding."""
NEAR = 1e-6
AFFORDABLE = 250_000
"""Steps on a grid; some hundredths of a second."""
TILTS = tuple(0.01 * 1.3**step for step in range(28))
"""Exponents tried for the bound; each gives a valid bound."""
LEAST = 1e-300


@dataclass(frozen=True)
class Blocks:
    """Sums of values of one problem in the newest block of runs, and in earlier blocks that have as many results."""

    newest: float
    earlier: tuple[float, ...]

    @property
    def values(self) -> tuple[float, ...]:
        return (self.newest, *self.earlier)


@dataclass(frozen=True)
class _Levels:
    """The same in whole numbers."""

    newest: int
    values: tuple[int, ...]

    @property
    def span(self) -> int:
        return max(self.values) - min(self.values)


def tails(items: Iterable[Blocks]) -> tuple[float, float]:
    """The probabilities of at most and of at least the observed sum of newest values, if all blocks are alike.

    Exact, by convolution. With one result in each of two blocks it is the exact McNemar test.
    """
    informative = [item for item in _levels(list(items)) if item.span]
    if not informative:
        return 1.0, 1.0
    if _steps(informative) > EXACT_UP_TO:
        return _bounds(informative)
    chance = [1.0]
    for item in informative:
        chance = _convolve(chance, item)
    observed = sum(item.newest - min(item.values) for item in informative)
    fewer, more = (min(1.0, max(LEAST, math.fsum(part))) for part in (chance[: observed + 1], chance[observed:]))
    return fewer, more


def bounds(items: Sequence[Blocks]) -> tuple[float, float]:
    """Upper bounds of the tails (Chernoff): exp(-b T) times the mean of exp(b T), for any b."""
    return _bounds(_levels(items))


def log_mean(logs: Sequence[float]) -> float:
    """Logarithm of the mean of numbers given by their logarithms."""
    top = max(logs)
    return top + math.log(math.fsum(math.exp(log - top) for log in logs) / len(logs))


def _levels(items: Sequence[Blocks]) -> list[_Levels]:
    if all(isinstance(value, int) for item in items for value in item.values):
        return [_on_grid(item, 1) for item in items]
    widest = max(max(item.values) - min(item.values) for item in items)
    if not widest:
        return []
    rounded: list[_Levels] = []
    for unit in (*_common_unit(items), *(widest / grid for grid in GRIDS)):
        rounded = [_on_grid(item, unit) for item in items]
        if _steps(rounded) <= AFFORDABLE:
            break
    return rounded


def _common_unit(items: Sequence[Blocks]) -> list[float]:
    """The largest unit of which all values are multiples, if there is one."""
    values = [value for item in items for value in item.values]
    for parts in range(1, MOST_PARTS + 1):
        if all(abs(value * parts - round(value * parts)) < NEAR for value in values):
            return [1 / parts]
    return []


def _on_grid(item: Blocks, unit: float) -> _Levels:
    if unit == 1:
        return _Levels(round(item.newest), tuple(map(round, item.values)))
    low = min(item.values)
    values = tuple(round((value - low) / unit) for value in item.values)
    return _Levels(values[0], values)


def _bounds(items: Sequence[_Levels]) -> tuple[float, float]:
    limits = []
    for sign in (-1, 1):
        lowest = min(
            math.fsum(log_mean([sign * tilt * (value - item.newest) for value in item.values]) for item in items)
            for tilt in TILTS
        )
        limits.append(math.exp(min(0.0, max(lowest, math.log(LEAST)))))
    return limits[0], limits[1]


def _steps(items: Sequence[_Levels]) -> int:
    """The number of steps of the convolution."""
    steps = length = 0
    for item in items:
        length += item.span
        steps += len(set(item.values)) * length
    return steps


def _convolve(chance: list[float], item: _Levels) -> list[float]:
    low, high = min(item.values), max(item.values)
    total: list[float] | None = None
    for value, count in Counter(item.values).items():
        weight = count / len(item.values)
        part = [0.0] * (value - low) + [probability * weight for probability in chance] + [0.0] * (high - value)
        total = part if total is None else list(map(add, total, part))
    assert total is not None
    return total
