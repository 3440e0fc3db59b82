"""Longest window whose spread is bounded: two monotone queues."""

from random import Random

from .definition import Case, Problem


def _case(rng: Random, n: int, tolerance: int, top: int) -> Case:
    return [rng.randint(-top, top) for _ in range(n)], tolerance


PROBLEM = Problem(
    title="Calm Stretch",
    difficulty="medium",
    date="2025-01-26",
    signature="calmStretch(temps: list[int], tolerance: int) -> int",
    statement="""
A weather station logs one temperature per minute in the list `temps`. A stretch of consecutive minutes is *calm* if its
highest and its lowest temperature differ by at most `tolerance`.

Return the length of the longest calm stretch.

**Limits**

- 1 ≤ len(temps) ≤ 100000
- -10^9 ≤ temps[i] ≤ 10^9
- 0 ≤ tolerance ≤ 10^9
""",
    reference="""
from collections import deque


class Solution:
    def calmStretch(self, temps: list[int], tolerance: int) -> int:
        highs, lows = deque(), deque()
        best = start = 0
        for i, temp in enumerate(temps):
            while highs and temps[highs[-1]] <= temp:
                highs.pop()
            while lows and temps[lows[-1]] >= temp:
                lows.pop()
            highs.append(i)
            lows.append(i)
            while temps[highs[0]] - temps[lows[0]] > tolerance:
                start += 1
                if highs[0] < start:
                    highs.popleft()
                if lows[0] < start:
                    lows.popleft()
            best = max(best, i - start + 1)
        return best
""",
    brute="""
class Solution:
    def calmStretch(self, temps, tolerance):
        best = 0
        for i in range(len(temps)):
            low = high = temps[i]
            for j in range(i, len(temps)):
                low = min(low, temps[j])
                high = max(high, temps[j])
                if high - low > tolerance:
                    break
                best = max(best, j - i + 1)
        return best
""",
    public=[([4, 6, 5, 9, 8, 7, 8], 2), ([1, 5, 1, 5], 3)],
    edges=[
        ([7], 0),
        ([3, 3, 3], 0),
        ([10**9, -(10**9)], 10**9),
        ([1, 2, 3, 4, 5, 6], 5),
        ([5, 1, 2, 3, 9, 8, 7, 8, 9], 2),
    ],
    small=lambda rng: _case(rng, rng.randint(1, 12), rng.randint(0, 5), 6),
    large=lambda rng: [_case(rng, 3000, 10**9, 10**9), _case(rng, 45000, 9, 4), _case(rng, 30000, 17, 9)],
)
