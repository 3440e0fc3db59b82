"""Corrects for results that resemble those of neighbouring days, which make the newest block stray further than others.
Pure.

`evidence` treats blocks in a row as interchangeable. If a model tends to repeat its answers, neighbours are alike, and the
block at the end of the row has a neighbour on one side only: it lies further from the mean than one in the middle. The
correlation of neighbours is estimated from the blocks of all problems together, and the p-value is corrected for it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist

MOST = 0.99
STEPS = 20


def corrected(chance: float, excess: float) -> float:
    """The probability of a deviation whose variance is larger than assumed by the factor `excess`."""
    if excess <= 1 or chance >= 0.5:
        return chance
    distance = NormalDist().inv_cdf(1 - chance) if chance > 1e-12 else math.sqrt(-2 * math.log(chance))
    return max(chance, math.erfc(distance / math.sqrt(2 * excess)) / 2)


def excess_of(rows: Sequence[tuple[float, ...]]) -> float:
    """The factor by which one more block at the end of each row varies more around the mean than the others; at least 1.

    It uses only the blocks before it, so that a current change is not mistaken for memory.
    """
    lengths = Counter(len(row) for row in rows if len(set(row)) > 1)
    if not lengths or (length := lengths.most_common(1)[0][0]) < 3:
        return 1.0
    together = spread = 0.0
    for row in rows:
        if len(row) == length:
            mean = math.fsum(row) / length
            off = [value - mean for value in row]
            together += math.fsum(a * b for a, b in pairwise(off))
            spread += math.fsum(deviation * deviation for deviation in off)
    return _excess(_likeness(together / spread, length), length + 1)


def _likeness(observed: float, length: int) -> float:
    """The correlation of neighbours that explains the observed one, which is biased downwards in short rows."""
    low, high = 0.0, MOST
    if observed <= _observed(low, length):
        return low
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _observed(middle, length) < observed else (low, middle)
    return high


@lru_cache(maxsize=10_000)
def _observed(likeness: float, length: int) -> float:
    """The expected sum of neighbours' products over the sum of squares, if the correlation decays geometrically."""
    of_mean = _variance_of_mean(likeness, length)
    with_mean = [_with_mean(likeness, length, index) for index in range(length)]
    together = sum(likeness - with_mean[index] - with_mean[index + 1] + of_mean for index in range(length - 1))
    return together / (length * (1 - of_mean))


def _excess(likeness: float, length: int) -> float:
    if likeness == 0:
        return 1.0
    of_mean = _variance_of_mean(likeness, length)
    return max(1.0, (1 - 2 * _with_mean(likeness, length, 0) + of_mean) / (1 - of_mean))


def _variance_of_mean(likeness: float, length: int) -> float:
    return sum(_with_mean(likeness, length, index) for index in range(length)) / length


def _with_mean(likeness: float, length: int, index: int) -> float:
    """Covariance of one index with the mean of the row."""
    return sum(likeness ** abs(index - other) for other in range(length)) / length
