"""How far each roof sees to the right: a stack of roofs; walking from each is too slow."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, n: int, top: int) -> str:
    return text(n, (rng.randint(1, top) for _ in range(n)))


def _slope(rng: Random, n: int) -> str:
    return text(n, (n - i - (rng.random() < 0.001) * 40 for i in range(n)))


PROBLEM = Problem(
    title="Roof Views",
    difficulty="medium",
    date="2024-11-17",
    statement="""
The houses of a street have the heights `h_1 ... h_n` from west to east. A chimney sweep on the roof of house `i` looks
east and counts roofs one by one, up to and including the first roof that is at least as high as his own; that one blocks
the view. If there is no such roof he counts all roofs to the end of the street.

He does so on every house. What is the sum of his counts?

**Input**

The first line holds `n` (1 ≤ n ≤ 100000), the second line `h_1 ... h_n` (1 ≤ h_i ≤ 10^9).

**Output**

One integer: the sum over all houses.
""",
    reference="""
import sys


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    n, heights = data[0], data[1:]
    total, waiting = 0, []
    for i, height in enumerate(heights):
        while waiting and heights[waiting[-1]] <= height:
            total += i - waiting.pop()
        waiting.append(i)
    total += sum(n - 1 - i for i in waiting)
    print(total)


main()
""",
    brute="""
n = int(input())
h = list(map(int, input().split()))
total = 0
for i in range(n):
    for j in range(i + 1, n):
        total += 1
        if h[j] >= h[i]:
            break
print(total)
""",
    public=[text(6, (4, 2, 3, 3, 5, 1)), text(3, (3, 2, 1))],
    edges=[text(1, (9,)), text(4, (5, 5, 5, 5)), text(5, (1, 2, 3, 4, 5)), text(7, (7, 1, 2, 7, 3, 9, 8))],
    small=lambda rng: _case(rng, rng.randint(1, 10), 8),
    large=lambda rng: [_case(rng, 5000, 10**9), _slope(rng, 40000)],
)
