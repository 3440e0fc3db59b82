"""Minimum over a sliding window; taking the minimum of each window anew is too slow."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, n: int, reach: int, top: int, slippery: float) -> str:
    costs = (-1 if rng.random() < slippery else rng.randint(0, top) for _ in range(n))
    return text((n, reach), costs)


PROBLEM = Problem(
    title="River Stones",
    difficulty="medium",
    date="2024-02-11",
    statement="""
A trader crosses a river on `n` stones that lie in a line, one metre apart. The near bank is one metre before stone 1, the
far bank one metre behind stone `n`. She jumps forwards only, at most `k` metres at a time. Landing on stone `i` costs a
toll `c_i`; a stone with `c_i = -1` is slippery and must not be used. The banks cost nothing.

What is the least total toll from bank to bank?

**Input**

The first line holds `n` and `k` (1 ≤ n ≤ 100000, 1 ≤ k ≤ n + 1). The second line holds `c_1 ... c_n` (-1 ≤ c_i ≤ 10^6).

**Output**

The least total toll, or `stuck` if the far bank cannot be reached.
""",
    reference="""
import sys
from collections import deque


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    n, k = data[0], data[1]
    tolls = data[2:] + [0]
    window = deque([(0, 0)])
    for place, toll in enumerate(tolls, 1):
        while window and window[0][0] < place - k:
            window.popleft()
        if toll < 0:
            continue
        if not window:
            break
        best = window[0][1] + toll
        if place == n + 1:
            print(best)
            return
        while window and window[-1][1] >= best:
            window.pop()
        window.append((place, best))
    print("stuck")


main()
""",
    brute="""
n, k = map(int, input().split())
toll = [0] + list(map(int, input().split())) + [0]
INF = float("inf")
best = [INF] * (n + 2)
best[0] = 0
for i in range(1, n + 2):
    if toll[i] >= 0:
        best[i] = min(best[max(0, i - k):i]) + toll[i]
print("stuck" if best[n + 1] == INF else best[n + 1])
""",
    public=[text((5, 2), (4, 1, 7, 2, 3)), text((4, 2), (3, -1, -1, 5)), text((3, 4), (9, 9, 9))],
    edges=[text((1, 1), (-1,)), text((1, 2), (-1,)), text((1, 1), (0,)), text((5, 3), (-1, -1, 8, -1, -1))],
    small=lambda rng: _case(rng, n := rng.randint(1, 10), rng.randint(1, min(4, n)), 9, 0.3),
    large=lambda rng: [_case(rng, 3000, 40, 10**6, 0.5), _case(rng, 100000, 45000, 9, 0.2)],
)
