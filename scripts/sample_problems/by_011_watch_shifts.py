"""Cover a stretch with the fewest intervals: greedy."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, count: int, length: int, longest: int) -> str:
    shifts = []
    for _ in range(count):
        start = rng.randint(0, length)
        shifts.append((start, start + rng.randint(1, longest)))
    return text((count, length), *shifts)


PROBLEM = Problem(
    title="Watch Shifts",
    difficulty="medium",
    date="2024-04-21",
    statement="""
A lighthouse must be watched from minute 0 to minute `T`. Each of `n` volunteers offers one shift: from minute `s` up to
minute `e`. A shift may begin exactly when another ends, and shifts may overlap or reach beyond `T`.

What is the least number of volunteers with which somebody is on watch all the time?

**Input**

The first line holds `n` and `T` (1 ≤ n ≤ 100000, 1 ≤ T ≤ 10^9). Each of the next `n` lines holds `s` and `e`
(0 ≤ s < e ≤ 2·10^9).

**Output**

The least number of volunteers, or `-1` if there will be a gap whatever is chosen.
""",
    reference="""
import sys


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    n, end = data[0], data[1]
    shifts = sorted(zip(data[2::2], data[3::2]))
    covered = reach = used = i = 0
    while covered < end:
        while i < n and shifts[i][0] <= covered:
            reach = max(reach, shifts[i][1])
            i += 1
        if reach <= covered:
            print(-1)
            return
        covered = reach
        used += 1
    print(used)


main()
""",
    brute="""
n, T = map(int, input().split())
shifts = [tuple(map(int, input().split())) for _ in range(n)]
INF = 10**9
need = [0] + [INF] * T
for minute in range(1, T + 1):
    for s, e in shifts:
        if s < minute <= e:
            need[minute] = min(need[minute], need[s] + 1)
print(need[T] if need[T] < INF else -1)
""",
    public=[
        text((4, 10), (0, 4), (3, 7), (4, 8), (7, 12)),
        text((3, 6), (0, 2), (3, 6), (1, 2)),
        text((2, 5), (0, 5), (0, 9)),
    ],
    edges=[
        text((1, 1), (0, 1)),
        text((1, 1), (1, 2)),
        text((3, 9), (0, 3), (3, 6), (6, 9)),
        text((2, 5), (0, 4), (2, 4)),
    ],
    small=lambda rng: _case(rng, rng.randint(1, 8), rng.randint(1, 9), 5),
    large=lambda rng: [_case(rng, 3000, 10**6, 9000), _case(rng, 14000, 50000, 90)],
)
