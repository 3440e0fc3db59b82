"""Convex hull on integers: area and corners, with everything that can be degenerate."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, n: int, top: int) -> str:
    return text(n, *((rng.randint(-top, top), rng.randint(-top, top)) for _ in range(n)))


PROBLEM = Problem(
    title="Field of Flags",
    difficulty="hard",
    date="2024-09-29",
    statement="""
Surveyors put `n` flags into a field, at points with integer coordinates; several flags may stand at the same point. A rope
is laid around all of them and pulled tight.

Report *twice* the area inside the rope, and the number of points at which the rope changes its direction. A flag in the
middle of a straight stretch of rope is no such point. If all flags stand on one line, the rope runs there and back: the
area is 0 and the number of points is 2. If all flags stand at one point, the number is 1.

**Input**

The first line holds `n` (1 ≤ n ≤ 50000). Each of the next `n` lines holds `x` and `y` (-10^9 ≤ x, y ≤ 10^9).

**Output**

Two integers on one line: twice the area, and the number of points.
""",
    reference="""
import sys


def half_hull(points):
    hull = []
    for x, y in points:
        while len(hull) > 1:
            (ax, ay), (bx, by) = hull[-2], hull[-1]
            if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                break
            hull.pop()
        hull.append((x, y))
    return hull


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    points = sorted(set(zip(data[1::2], data[2::2])))
    if len(points) == 1:
        print(0, 1)
        return
    hull = half_hull(points)[:-1] + half_hull(points[::-1])[:-1]
    area = sum(ax * by - ay * bx for (ax, ay), (bx, by) in zip(hull, hull[1:] + hull[:1]))
    print(area, len(hull))


main()
""",
    brute="""
n = int(input())
flags = sorted({tuple(map(int, input().split())) for _ in range(n)})


def turn(a, b, c):
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


if len(flags) == 1:
    print(0, 1)
elif all(turn(flags[0], flags[-1], f) == 0 for f in flags):
    print(0, 2)
else:
    # Walk from corner to corner: the next one has every other flag on its left; of several on a line, the farthest.
    at, corners = flags[0], []
    while not corners or at != flags[0]:
        corners.append(at)
        best = None
        for f in flags:
            if f == at:
                continue
            side = turn(at, best, f) if best else -1
            farther = best and (f[0] - at[0]) ** 2 + (f[1] - at[1]) ** 2 > (best[0] - at[0]) ** 2 + (best[1] - at[1]) ** 2
            if side < 0 or (side == 0 and farther):
                best = f
        at = best
    area = sum(a[0] * b[1] - a[1] * b[0] for a, b in zip(corners, corners[1:] + corners[:1]))
    print(area, len(corners))
""",
    public=[
        text(5, (0, 0), (4, 0), (4, 3), (0, 3), (2, 0)),
        text(3, (1, 1), (3, 3), (2, 2)),
        text(4, (0, 0), (5, 1), (2, 6), (2, 2)),
    ],
    edges=[
        text(1, (-5, 7)),
        text(3, (2, 2), (2, 2), (2, 2)),
        text(4, (0, 5), (0, 1), (0, 9), (0, 5)),
        text(4, *((x, y) for x in (-(10**9), 10**9) for y in (-(10**9), 10**9))),
        text(8, (0, 0), (1, 0), (2, 0), (0, 1), (2, 1), (0, 2), (1, 2), (2, 2)),
    ],
    small=lambda rng: _case(rng, rng.randint(1, 9), 3),
    large=lambda rng: [_case(rng, 3000, 10**9), _case(rng, 12000, 60), text(2500, *((x, x * x) for x in range(2500)))],
)
