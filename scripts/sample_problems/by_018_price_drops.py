"""Count pairs out of order by at least k with a Fenwick tree; all pairs are too many."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, n: int, drop: int, top: int) -> str:
    return text((n, drop), (rng.randint(0, top) for _ in range(n)))


PROBLEM = Problem(
    title="Price Drops",
    difficulty="hard",
    date="2024-07-07",
    statement="""
A market keeps the daily price of saffron, `p_1 ... p_n`. For an article about bad timing a reporter counts the pairs of days
`i < j` on which one could have bought on day `i` and sold on day `j` with a loss of at least `k`, that is with
`p_i - p_j ≥ k`.

**Input**

The first line holds `n` and `k` (1 ≤ n ≤ 100000, 0 ≤ k ≤ 10^9). The second line holds `p_1 ... p_n` (0 ≤ p_i ≤ 10^9).

**Output**

One integer: the number of such pairs. Mind `k = 0`: equal prices count then.
""",
    reference="""
import sys
from bisect import bisect_right


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    n, k = data[0], data[1]
    prices = data[2:]
    levels = sorted(set(prices))
    tree = [0] * (len(levels) + 1)
    pairs = 0
    for price in reversed(prices):
        i = bisect_right(levels, price - k)
        while i > 0:
            pairs += tree[i]
            i &= i - 1
        i = bisect_right(levels, price)
        while i < len(tree):
            tree[i] += 1
            i += i & -i
    print(pairs)


main()
""",
    brute="""
n, k = map(int, input().split())
p = list(map(int, input().split()))
print(sum(p[i] - p[j] >= k for i in range(n) for j in range(i + 1, n)))
""",
    public=[text((5, 2), (5, 3, 4, 1, 2)), text((3, 0), (4, 4, 9))],
    edges=[
        text((1, 0), (3,)),
        text((2, 10**9), (10**9, 0)),
        text((4, 0), (2, 2, 2, 2)),
        text((6, 1), (6, 5, 4, 3, 2, 1)),
    ],
    small=lambda rng: _case(rng, rng.randint(1, 10), rng.randint(0, 4), 9),
    large=lambda rng: [_case(rng, 3000, 10**7, 10**9), _case(rng, 40000, 40, 999)],
)
