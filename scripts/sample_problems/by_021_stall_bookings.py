"""Weighted intervals with a break between them: sort by end, search, choose."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, count: int, gap: int, length: int, longest: int) -> str:
    rows = []
    for _ in range(count):
        start = rng.randint(0, length)
        rows.append((start, start + rng.randint(1, longest), rng.randint(1, 999)))
    return text((count, gap), *rows)


PROBLEM = Problem(
    title="Stall Bookings",
    difficulty="hard",
    date="2026-02-15",
    statement="""
A town lets one market stall. It received `n` requests: from hour `s` to hour `e`, for a fee `f`. Requests can be accepted or
declined, not changed. Two accepted requests must not overlap, and after each of them the stall is cleaned for `g` hours
before the next one may begin (so the next one may begin at hour `e + g` or later).

What is the largest sum of fees?

**Input**

The first line holds `n` and `g` (1 ≤ n ≤ 50000, 0 ≤ g ≤ 10^9). Each of the next `n` lines holds `s e f`
(0 ≤ s < e ≤ 10^9, 1 ≤ f ≤ 10^9).

**Output**

One integer: the largest sum of fees.
""",
    reference="""
import sys
from bisect import bisect_right


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    gap = data[1]
    requests = sorted(zip(data[3::3], data[2::3], data[4::3]))
    ends, best = [], [0]
    for end, start, fee in requests:
        before = bisect_right(ends, start - gap)
        ends.append(end)
        best.append(max(best[-1], best[before] + fee))
    print(best[-1])


main()
""",
    brute="""
from itertools import combinations

n, g = map(int, input().split())
asks = sorted(tuple(map(int, input().split())) for _ in range(n))
best = 0
for count in range(1, n + 1):
    for chosen in combinations(asks, count):
        if all(a[1] + g <= b[0] for a, b in zip(chosen, chosen[1:])):
            best = max(best, sum(c[2] for c in chosen))
print(best)
""",
    public=[text((4, 1), (0, 3, 5), (3, 5, 4), (4, 6, 6), (7, 9, 2)), text((2, 0), (0, 2, 3), (2, 4, 3))],
    edges=[
        text((1, 10**9), (0, 1, 7)),
        text((3, 0), (0, 9, 10), (0, 4, 5), (4, 9, 5)),
        text((3, 2), (0, 1, 1), (3, 4, 1), (5, 6, 1)),
    ],
    small=lambda rng: _case(rng, rng.randint(1, 8), rng.randint(0, 2), 12, 5),
    large=lambda rng: [_case(rng, 2000, 3, 10**6, 9000), _case(rng, 12000, 1, 9999, 30)],
)
