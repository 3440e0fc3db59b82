"""Count close pairs by sorting; comparing all pairs is too slow."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, n: int, gap: int, top: int) -> str:
    return text((n, gap), (rng.randint(-top, top) for _ in range(n)))


PROBLEM = Problem(
    title="Close Pairs",
    difficulty="medium",
    date="2024-09-08",
    statement="""
A tuning workshop measured `n` strings; string `i` is off by `a_i` cents. Two strings sound well together if their values
differ by at most `d`. Count the pairs of strings that sound well together.

**Input**

The first line holds `n` and `d` (1 ≤ n ≤ 100000, 0 ≤ d ≤ 10^9). The second line holds `a_1 ... a_n`
(-10^9 ≤ a_i ≤ 10^9).

**Output**

One integer: the number of pairs `i < j` with `|a_i - a_j| ≤ d`.
""",
    reference="""
import sys


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    d = data[1]
    values = sorted(data[2:])
    pairs = low = 0
    for high, value in enumerate(values):
        while value - values[low] > d:
            low += 1
        pairs += high - low
    print(pairs)


main()
""",
    brute="""
n, d = map(int, input().split())
a = list(map(int, input().split()))
pairs = 0
for i in range(n):
    for j in range(i + 1, n):
        if abs(a[i] - a[j]) <= d:
            pairs += 1
print(pairs)
""",
    public=[text((5, 2), (1, 4, 2, -3, 3)), text((4, 0), (7, 7, 7, 1))],
    edges=[
        text((1, 5), (0,)),
        text((2, 1999999999 // 2), (-(10**9), 10**9)),
        text((6, 0), (1, 2, 3, 4, 5, 6)),
        text((3, 1), (0, 0, 0)),
    ],
    small=lambda rng: _case(rng, rng.randint(1, 12), rng.randint(0, 4), 12),
    large=lambda rng: [_case(rng, 2000, 10**8, 10**9), _case(rng, 45000, 300, 9999)],
)
