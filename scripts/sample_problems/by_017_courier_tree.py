"""Sum of all distances in a tree: each edge counts for the pairs that it separates."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, n: int, back: int, top: int) -> str:
    names = list(range(1, n + 1))
    rng.shuffle(names)
    edges = []
    for i in range(1, n):
        pair = [names[i], names[rng.randint(max(0, i - back), i - 1)]]
        rng.shuffle(pair)
        edges.append((*pair, rng.randint(1, top)))
    rng.shuffle(edges)
    return text(n, *edges)


PROBLEM = Problem(
    title="Courier Tree",
    difficulty="hard",
    date="2024-02-25",
    statement="""
The `n` villages of a valley are connected by `n - 1` paths, so that there is exactly one way between any two of them. Each
path has a length. Once a year every pair of villages exchanges a letter: one courier walks from one village of the pair
to the other, one way.

How far do all couriers walk together? Give the sum modulo 1000000007.

**Input**

The first line holds `n` (1 ≤ n ≤ 50000). Each of the next `n - 1` lines holds `a b w`: a path of length `w` between the
villages `a` and `b` (1 ≤ w ≤ 10^9).

**Output**

The sum of the distances of all unordered pairs of villages, modulo 1000000007.
""",
    reference="""
import sys


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    n = data[0]
    near = [[] for _ in range(n + 1)]
    for i in range(1, len(data), 3):
        a, b, w = data[i:i + 3]
        near[a].append((b, w))
        near[b].append((a, w))
    parent, length = [0] * (n + 1), [0] * (n + 1)
    order = [1]
    for village in order:
        for other, w in near[village]:
            if other != parent[village]:
                parent[other], length[other] = village, w
                order.append(other)
    size = [1] * (n + 1)
    total = 0
    for village in reversed(order[1:]):
        total += length[village] * size[village] * (n - size[village])
        size[parent[village]] += size[village]
    print(total % 1000000007)


main()
""",
    brute="""
from collections import deque

n = int(input())
paths = {v: [] for v in range(1, n + 1)}
for _ in range(n - 1):
    a, b, w = map(int, input().split())
    paths[a].append((b, w))
    paths[b].append((a, w))
total = 0
for start in paths:
    far = {start: 0}
    queue = deque([start])
    while queue:
        v = queue.popleft()
        for u, w in paths[v]:
            if u not in far:
                far[u] = far[v] + w
                queue.append(u)
    total += sum(far.values())
print(total // 2 % 1000000007)
""",
    public=[text(4, (1, 2, 3), (2, 3, 1), (2, 4, 5)), text(2, (2, 1, 10))],
    edges=[text(1), text(3, (1, 2, 10**9), (2, 3, 10**9)), text(5, *((1, i, 10**9) for i in range(2, 6)))],
    small=lambda rng: _case(rng, rng.randint(1, 9), rng.choice([1, 9]), 9),
    large=lambda rng: [_case(rng, 1500, 1500, 10**9), _case(rng, 14000, 2, 99), _case(rng, 14000, 14000, 9)],
)
