"""Filter, then collapse equal neighbours."""

from random import Random

from .definition import Case, Problem


def _case(rng: Random, n: int, top: int) -> Case:
    low = rng.randint(-top, top // 2)
    return [rng.randint(-top, top) for _ in range(n)], low, low + rng.randint(0, top)


PROBLEM = Problem(
    title="Trim a Signal",
    difficulty="easy",
    date="2024-12-29",
    signature="trimSignal(values: list[int], low: int, high: int) -> list[int]",
    statement="""
A sensor delivers the list `values`. Clean it in two steps:

1. drop every value that is less than `low` or greater than `high`;
2. in what is left, replace each run of equal neighbours by a single value.

Values that become neighbours only because something between them was dropped count as neighbours. Return the cleaned
list; it may be empty.

**Limits**

- 0 ≤ len(values) ≤ 10000
- -10^6 ≤ values[i] ≤ 10^6
- -10^6 ≤ low ≤ high ≤ 10^6
""",
    reference="""
from itertools import groupby


class Solution:
    def trimSignal(self, values: list[int], low: int, high: int) -> list[int]:
        return [value for value, _ in groupby(v for v in values if low <= v <= high)]
""",
    brute="""
class Solution:
    def trimSignal(self, values, low, high):
        out = []
        for v in values:
            if v < low or v > high:
                continue
            if out and out[-1] == v:
                continue
            out.append(v)
        return out
""",
    public=[([3, 3, 9, 3, 4, 4, 1], 2, 5), ([], 0, 1)],
    edges=[([5], 5, 5), ([5], 6, 9), ([0, 0, 0], -1, 1), ([7, 100, 7, 100, 7], 0, 50), ([-3, -3, 2, -3], -3, 0)],
    small=lambda rng: _case(rng, rng.randint(0, 12), 4),
    large=lambda rng: [_case(rng, 3000, 5)],
)
