"""Difference array over a line; marking cell by cell is too slow."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, n: int, reach: int, density: float) -> str:
    return text((n, reach), "".join("#" if rng.random() < density else "." for _ in range(n)))


PROBLEM = Problem(
    title="Lantern Row",
    difficulty="easy",
    date="2024-01-14",
    statement="""
A harbour wall has `n` hooks in a row. The wall is described by a string: `#` is a hook with a burning lantern, `.` is an
empty hook. Every lantern lights its own hook and all hooks at a distance of at most `r` from it.

Count the hooks that stay dark.

**Input**

The first line holds two integers `n` and `r` (1 ≤ n ≤ 200000, 0 ≤ r ≤ n). The second line holds the string of length `n`.

**Output**

One integer: the number of dark hooks.
""",
    reference="""
import sys


def main():
    n, reach = map(int, sys.stdin.readline().split())
    row = sys.stdin.readline().strip()
    change = [0] * (n + 1)
    for i, hook in enumerate(row):
        if hook == "#":
            change[max(0, i - reach)] += 1
            change[min(n, i + reach + 1)] -= 1
    level = dark = 0
    for i in range(n):
        level += change[i]
        dark += level == 0
    print(dark)


main()
""",
    brute="""
n, r = map(int, input().split())
row = input().strip()
lit = [False] * n
for i in range(n):
    if row[i] == "#":
        for j in range(max(0, i - r), min(n, i + r + 1)):
            lit[j] = True
print(lit.count(False))
""",
    public=[text((10, 1), "..#....#.."), text((5, 2), "....."), text((7, 0), "#.##..#")],
    edges=[text((1, 0), "."), text((1, 1), "#"), text((6, 6), "#....."), text((6, 2), "#....#")],
    small=lambda rng: _case(rng, n := rng.randint(1, 18), rng.randint(0, min(n, 4)), 0.15),
    large=lambda rng: [_case(rng, 200000, 3, 0.1), _case(rng, 200000, 40000, 0.5), _case(rng, 200000, 900, 0.0005)],
)
