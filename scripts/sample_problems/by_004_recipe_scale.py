"""Exact fractions and their mixed form."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, count: int, top: int) -> str:
    def row() -> str:
        return f"{rng.randint(0, top)}/{rng.randint(1, top)} {rng.randint(1, top)} {rng.randint(1, top)}"

    return text(count, *(row() for _ in range(count)))


PROBLEM = Problem(
    title="Scaling a Recipe",
    difficulty="easy",
    date="2024-04-07",
    statement="""
A cookbook lists each ingredient as a fraction of a cup `a/b` for `s` servings. The cook needs `t` servings and wants
every amount written the way a measuring cup shows it: the whole cups, a space, and the rest as a fraction in lowest terms.

- If the amount is a whole number (also 0), print only that number.
- If it is less than one cup, print only the fraction.

**Input**

The first line holds `q` (1 ≤ q ≤ 1000). Each of the next `q` lines holds `a/b s t`
(0 ≤ a ≤ 10^9; 1 ≤ b, s, t ≤ 10^9).

**Output**

For each line the amount for `t` servings, on a line of its own.
""",
    reference="""
import sys
from fractions import Fraction


def mixed(amount):
    whole, rest = divmod(amount.numerator, amount.denominator)
    if rest == 0:
        return str(whole)
    part = f"{rest}/{amount.denominator}"
    return f"{whole} {part}" if whole else part


lines = sys.stdin.read().splitlines()
for line in lines[1:int(lines[0]) + 1]:
    cup, s, t = line.split()
    print(mixed(Fraction(cup) * int(t) / int(s)))
""",
    brute="""
from math import gcd

for _ in range(int(input())):
    cup, s, t = input().split()
    a, b = map(int, cup.split("/"))
    top, bottom = a * int(t), b * int(s)
    g = gcd(top, bottom)
    top //= g
    bottom //= g
    if bottom == 1:
        print(top)
    elif top < bottom:
        print(f"{top}/{bottom}")
    else:
        print(f"{top // bottom} {top % bottom}/{bottom}")
""",
    public=[text(4, "1/2 4 6", "2/3 2 3", "3/4 6 4", "5/2 3 4"), text(2, "0/5 1 1", "6/4 1 1")],
    edges=[
        text(1, "1000000000/1 1 1000000000"),
        text(1, "1/1000000000 1000000000 1"),
        text(2, "999999937/2 3 5", "7/7 7 7"),
    ],
    small=lambda rng: _case(rng, rng.randint(1, 6), 12),
    large=lambda rng: [_case(rng, 400, 10**9), _case(rng, 1000, 30)],
)
