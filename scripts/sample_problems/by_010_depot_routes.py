"""Shortest path in two layers: before and after the coupon is used."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, n: int, m: int, top: int) -> str:
    roads = []
    for _ in range(m):
        a, b = rng.sample(range(1, n + 1), 2)
        roads.append((a, b, rng.randint(1, top)))
    return text((n, m), *roads)


def _chain(rng: Random, n: int) -> str:
    roads = [(i, i + 1, rng.randint(1, 9)) for i in range(1, n)] + [(i, i + 5, 60) for i in range(1, n - 4)]
    rng.shuffle(roads)
    return text((n, len(roads)), *roads)


PROBLEM = Problem(
    title="Depot Routes",
    difficulty="medium",
    date="2024-03-24",
    statement="""
Depots 1 to `n` are connected by `m` toll roads that can be driven in both directions. A driver goes from depot 1 to depot
`n`. He owns one coupon: on at most one road of his trip he pays half the toll, rounded down.

What is the least he has to pay? There may be several roads between two depots.

**Input**

The first line holds `n` and `m` (2 ≤ n ≤ 20000, 0 ≤ m ≤ 40000). Each of the next `m` lines holds `a b t`: a road between
the different depots `a` and `b` with toll `t` (1 ≤ t ≤ 10^9).

**Output**

The least total, or `-1` if depot `n` cannot be reached.
""",
    reference="""
import heapq
import sys


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    n, m = data[0], data[1]
    roads = [[] for _ in range(2 * n)]
    for i in range(2, 2 + 3 * m, 3):
        a, b, toll = data[i] - 1, data[i + 1] - 1, data[i + 2]
        for u, v in ((a, b), (b, a)):
            roads[u].append((v, toll))
            roads[u].append((v + n, toll // 2))
            roads[u + n].append((v + n, toll))
    best = {}
    heap = [(0, 0)]
    while heap:
        paid, u = heapq.heappop(heap)
        if u in best:
            continue
        best[u] = paid
        for v, toll in roads[u]:
            if v not in best:
                heapq.heappush(heap, (paid + toll, v))
    print(min(best.get(n - 1, 10**18), best.get(2 * n - 1, 10**18)) if n - 1 in best else -1)


main()
""",
    brute="""
import sys

numbers = list(map(int, sys.stdin.read().split()))
n, m = numbers[:2]
roads = [tuple(numbers[i:i + 3]) for i in range(2, 2 + 3 * m, 3)]


def cheapest(roads):
    cost = [0] + [float("inf")] * (n - 1)
    changed = True
    while changed:
        changed = False
        for a, b, t in roads:
            for u, v in ((a - 1, b - 1), (b - 1, a - 1)):
                if cost[u] + t < cost[v]:
                    cost[v] = cost[u] + t
                    changed = True
    return cost[n - 1]


answer = min(
    (cheapest(roads[:i] + [(a, b, t // 2)] + roads[i + 1:]) for i, (a, b, t) in enumerate(roads)),
    default=float("inf"),
)
print(-1 if answer == float("inf") else answer)
""",
    public=[
        text((4, 4), (1, 2, 4), (2, 4, 4), (1, 3, 1), (3, 4, 9)),
        text((3, 1), (1, 2, 5)),
        text((2, 2), (1, 2, 7), (2, 1, 8)),
    ],
    edges=[text((2, 0)), text((2, 1), (2, 1, 1)), text((5, 4), (1, 2, 10), (2, 3, 10), (3, 4, 10), (4, 5, 11))],
    small=lambda rng: _case(rng, rng.randint(2, 6), rng.randint(0, 9), 12),
    large=lambda rng: [_case(rng, 1500, 3500, 10**9), _chain(rng, 9000)],
)
