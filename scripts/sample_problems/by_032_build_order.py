"""The smallest topological order."""

from random import Random

from .definition import Case, Problem


def _case(rng: Random, n: int, m: int, loops: float) -> Case:
    names = list(range(n))
    rng.shuffle(names)
    pairs = []
    for _ in range(m):
        a, b = sorted(rng.sample(range(n), 2))
        pairs.append([names[a], names[b]] if rng.random() >= loops else [names[b], names[a]])
    return n, pairs


PROBLEM = Problem(
    title="Build Order",
    difficulty="medium",
    date="2025-08-03",
    signature="buildOrder(n: int, pairs: list[list[int]]) -> list[int]",
    statement="""
A workshop has tasks 0 to `n - 1`. Each pair `[a, b]` in `pairs` says that task `a` must be finished before task `b` begins;
a pair may occur more than once. One task is done at a time.

Return the order in which all tasks can be done; if there are several, the one that is smallest when orders are compared
from the first task on (the first task as small as possible, then the second, and so on). If no order is possible return
an empty list.

**Limits**

- 1 ≤ n ≤ 5000
- 0 ≤ len(pairs) ≤ 20000, 0 ≤ a, b < n, a ≠ b
""",
    reference="""
import heapq


class Solution:
    def buildOrder(self, n: int, pairs: list[list[int]]) -> list[int]:
        after = [[] for _ in range(n)]
        missing = [0] * n
        for a, b in pairs:
            after[a].append(b)
            missing[b] += 1
        ready = [task for task in range(n) if not missing[task]]
        order = []
        while ready:
            task = heapq.heappop(ready)
            order.append(task)
            for other in after[task]:
                missing[other] -= 1
                if not missing[other]:
                    heapq.heappush(ready, other)
        return order if len(order) == n else []
""",
    brute="""
class Solution:
    def buildOrder(self, n, pairs):
        order = []
        left = set(range(n))
        while left:
            for task in sorted(left):
                if not any(b == task and a in left for a, b in pairs):
                    order.append(task)
                    left.remove(task)
                    break
            else:
                return []
        return order
""",
    public=[(4, [[3, 1], [1, 0]]), (2, [[0, 1], [1, 0]]), (3, [])],
    edges=[(1, []), (3, [[2, 0], [2, 0]]), (5, [[4, 0], [4, 1], [3, 2]]), (4, [[0, 1], [1, 2], [2, 1], [2, 3]])],
    small=lambda rng: _case(rng, rng.randint(2, 7), rng.randint(0, 8), rng.choice([0, 0, 0.2])),
    large=lambda rng: [_case(rng, 900, 1500, 0), _case(rng, 2500, 3000, 0), _case(rng, 300, 900, 0.1)],
)
