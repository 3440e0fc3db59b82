"""Segments with a given greatest common divisor: few different divisors end at each place."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, n: int, g: int, factors: list[int]) -> str:
    return text((n, g), (g * rng.choice(factors) for _ in range(n)))


def _small(rng: Random) -> str:
    n, g = rng.randint(1, 10), rng.randint(1, 4)
    return text((n, g), (rng.choice([g, 2 * g, 3 * g, 6 * g, 5, 7, 12]) for _ in range(n)))


PROBLEM = Problem(
    title="Common Measure",
    difficulty="medium",
    date="2024-10-20",
    statement="""
A row of `n` planks has the lengths `a_1 ... a_n`. A carpenter takes some neighbouring planks (at least one) and asks for the
longest whole length by which all of them can be divided without rest: their greatest common divisor.

In how many ways can he choose the neighbouring planks so that the answer is exactly `g`?

**Input**

The first line holds `n` and `g` (1 ≤ n ≤ 100000, 1 ≤ g ≤ 10^9). The second line holds `a_1 ... a_n` (1 ≤ a_i ≤ 10^9).

**Output**

One integer: the number of pairs `l ≤ r` for which the greatest common divisor of `a_l ... a_r` is `g`.
""",
    reference="""
import sys
from math import gcd


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    g = data[1]
    total, ending = 0, {}
    for plank in data[2:]:
        following = {plank: 1}
        for measure, count in ending.items():
            common = gcd(measure, plank)
            following[common] = following.get(common, 0) + count
        ending = following
        total += ending.get(g, 0)
    print(total)


main()
""",
    brute="""
from math import gcd

n, g = map(int, input().split())
a = list(map(int, input().split()))
count = 0
for i in range(n):
    measure = 0
    for j in range(i, n):
        measure = gcd(measure, a[j])
        if measure == g:
            count += 1
        elif measure < g:
            break
print(count)
""",
    public=[text((5, 2), (4, 6, 2, 3, 8)), text((3, 5), (5, 10, 5))],
    edges=[text((1, 1), (1,)), text((1, 7), (14,)), text((4, 3), (6, 9, 6, 12)), text((3, 10**9), (10**9, 10**9, 1))],
    small=_small,
    large=lambda rng: [_case(rng, 6000, 840, [2, 3, 4, 5, 6, 7, 1]), _case(rng, 60000, 6, [2, 3, 4])],
)
