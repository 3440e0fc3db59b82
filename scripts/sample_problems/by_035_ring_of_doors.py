"""Colour a ring so that neighbours differ: fix the first colour, then go round."""

from random import Random

from .definition import Case, Problem


def _case(rng: Random, n: int, k: int, top: int) -> Case:
    return ([[rng.randint(0, top) for _ in range(k)] for _ in range(n)],)


PROBLEM = Problem(
    title="Ring of Doors",
    difficulty="hard",
    date="2026-05-03",
    signature="cheapestRing(costs: list[list[int]]) -> int",
    statement="""
The doors of a round courtyard are to be painted. There are `n` doors and `k` colours; painting door `i` in colour `j` costs
`costs[i][j]`. Neighbouring doors must get different colours. The doors stand in a ring: the last door is a neighbour of
the first one. A single door has no neighbour.

Return the least total cost, or `-1` if the doors cannot be painted like that.

**Limits**

- 1 ≤ n ≤ 200, 1 ≤ k ≤ 20
- 0 ≤ costs[i][j] ≤ 10^6
""",
    reference="""
class Solution:
    def cheapestRing(self, costs: list[list[int]]) -> int:
        n, k = len(costs), len(costs[0])
        if n == 1:
            return min(costs[0])
        inf = float("inf")
        best = inf
        for first in range(k):
            row = [inf] * k
            row[first] = costs[0][first]
            for cost in costs[1:]:
                lowest = min(range(k), key=row.__getitem__)
                second = min((row[j] for j in range(k) if j != lowest), default=inf)
                row = [cost[j] + (second if j == lowest else row[lowest]) for j in range(k)]
            best = min([best] + [row[j] for j in range(k) if j != first])
        return -1 if best == inf else best
""",
    brute="""
from itertools import product


class Solution:
    def cheapestRing(self, costs):
        n, k = len(costs), len(costs[0])
        best = -1
        for paint in product(range(k), repeat=n):
            if n > 1 and any(paint[i] == paint[i - 1] for i in range(n)):
                continue
            total = sum(costs[i][paint[i]] for i in range(n))
            if best < 0 or total < best:
                best = total
        return best
""",
    public=[([[1, 5, 3], [2, 9, 4], [1, 6, 7]],), ([[4, 4], [1, 2], [3, 3]],), ([[8, 3]],)],
    edges=[
        ([[7]],),
        ([[7], [7]],),
        ([[1, 9], [1, 9]],),
        ([[0, 0], [0, 0], [0, 0], [0, 1]],),
        ([[1, 50, 50], [50, 50, 2], [3, 50, 50], [1, 40, 50]],),
    ],
    small=lambda rng: _case(rng, rng.randint(1, 5), rng.randint(1, 4), 9),
    large=lambda rng: [_case(rng, 200, 20, 999), _case(rng, 199, 2, 9), _case(rng, 150, 3, 10**6)],
)
