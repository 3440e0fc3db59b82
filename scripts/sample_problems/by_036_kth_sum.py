"""The k-th smallest sum of two lists by bisection on the value; writing all sums down is too much."""

from random import Random

from .definition import Case, Problem


def _case(rng: Random, n: int, m: int, top: int) -> Case:
    a = [rng.randint(-top, top) for _ in range(n)]
    b = [rng.randint(-top, top) for _ in range(m)]
    return a, b, rng.randint(1, n * m)


PROBLEM = Problem(
    title="The K-th Sum",
    difficulty="hard",
    date="2026-06-14",
    signature="kthSum(a: list[int], b: list[int], k: int) -> int",
    statement="""
A jeweller combines every stone of the list `a` with every setting of the list `b`; the price of a combination is the sum of
the two values. All `len(a) · len(b)` prices are written down in ascending order, equal prices as often as they occur.

Return the `k`-th price of that list, counted from 1. The lists are in no particular order.

**Limits**

- 1 ≤ len(a), len(b) ≤ 30000
- -10^8 ≤ a[i], b[j] ≤ 10^8
- 1 ≤ k ≤ len(a) · len(b)
""",
    reference="""
class Solution:
    def kthSum(self, a: list[int], b: list[int], k: int) -> int:
        a, b = sorted(a), sorted(b)

        def at_most(limit):
            count, j = 0, len(b)
            for value in a:
                while j and value + b[j - 1] > limit:
                    j -= 1
                if not j:
                    break
                count += j
            return count

        low, high = a[0] + b[0], a[-1] + b[-1]
        while low < high:
            middle = (low + high) // 2
            if at_most(middle) >= k:
                high = middle
            else:
                low = middle + 1
        return low
""",
    brute="""
class Solution:
    def kthSum(self, a, b, k):
        sums = []
        for x in a:
            for y in b:
                sums.append(x + y)
        sums.sort()
        return sums[k - 1]
""",
    public=[([1, 7, 3], [2, 4], 3), ([5], [-5], 1)],
    edges=[
        ([0, 0], [0, 0], 4),
        ([10**8], [10**8], 1),
        ([-(10**8), 10**8], [-(10**8), 10**8], 2),
        ([3, 1, 2], [10, 30, 20], 9),
    ],
    small=lambda rng: _case(rng, rng.randint(1, 5), rng.randint(1, 5), 9),
    large=lambda rng: [_case(rng, 300, 200, 10**8), _case(rng, 25000, 25000, 499)],
)
