"""Range additions and range sums with two Fenwick trees; touching each cell is too slow."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, n: int, count: int, top: int, wide: bool) -> str:
    ops: list[str] = []
    for _ in range(count):
        left, right = sorted((rng.randint(1, n), rng.randint(1, n)))
        if wide:
            left, right = rng.randint(1, 99), n - rng.randint(0, 99)
        ops.append(f"R {left} {right} {rng.randint(1, top)}" if rng.random() < 0.6 else f"Q {left} {right}")
    return text((n, count + 1), *ops, f"Q 1 {n}")


PROBLEM = Problem(
    title="Rain Gauges",
    difficulty="hard",
    date="2025-04-13",
    statement="""
Along a canal stand `n` rain gauges, numbered from 1, all empty. A log holds two kinds of lines:

- `R l r x`: a shower adds `x` millimetres to each of the gauges `l` to `r`;
- `Q l r`: somebody asks for the sum of the gauges `l` to `r` at that moment.

Answer all questions.

**Input**

The first line holds `n` and `m` (1 ≤ n ≤ 200000, 1 ≤ m ≤ 20000). The `m` lines of the log follow in order of time
(1 ≤ l ≤ r ≤ n, 1 ≤ x ≤ 10^6). At least one line is a question.

**Output**

For each question the sum, on a line of its own.
""",
    reference="""
import sys


def main():
    lines = sys.stdin.read().split("\\n")
    n, m = map(int, lines[0].split())
    slope, shift = [0] * (n + 2), [0] * (n + 2)

    def add(i, x):
        y = x * (i - 1)
        while i <= n:
            slope[i] += x
            shift[i] += y
            i += i & -i

    def upto(i):
        a = b = 0
        k = i
        while i > 0:
            a += slope[i]
            b += shift[i]
            i &= i - 1
        return a * k - b

    answers = []
    for line in lines[1:m + 1]:
        op = line.split()
        left, right = int(op[1]), int(op[2])
        if op[0] == "R":
            add(left, int(op[3]))
            add(right + 1, -int(op[3]))
        else:
            answers.append(upto(right) - upto(left - 1))
    print("\\n".join(map(str, answers)))


main()
""",
    brute="""
n, m = map(int, input().split())
gauge = [0] * (n + 1)
for _ in range(m):
    op = input().split()
    l, r = int(op[1]), int(op[2])
    if op[0] == "R":
        x = int(op[3])
        for i in range(l, r + 1):
            gauge[i] += x
    else:
        print(sum(gauge[l:r + 1]))
""",
    public=[text((5, 4), "R 1 3 10", "Q 2 5", "R 3 5 1", "Q 3 3"), text((1, 1), "Q 1 1")],
    edges=[
        text((1, 3), "R 1 1 5", "R 1 1 6", "Q 1 1"),
        text((3, 3), "R 2 2 4", "Q 1 1", "Q 3 3"),
        text((2, 2), "R 1 2 1000000", "Q 1 2"),
    ],
    small=lambda rng: _case(rng, rng.randint(1, 8), rng.randint(1, 9), 9, wide=False),
    large=lambda rng: [_case(rng, 900, 700, 10**6, wide=False), _case(rng, 200000, 18000, 9, wide=True)],
)
