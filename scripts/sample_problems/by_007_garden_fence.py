"""Perimeter of cells on a grid."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, high: int, wide: int, density: float) -> str:
    rows = ("".join("#" if rng.random() < density else "." for _ in range(wide)) for _ in range(high))
    return text((high, wide), *rows)


PROBLEM = Problem(
    title="Garden Fence",
    difficulty="easy",
    date="2024-07-21",
    statement="""
A map of square plots shows gardens as `#` and meadow as `.`. A fence of length 1 goes along every side where a garden
plot touches meadow or the edge of the map. There is no fence between two garden plots. Meadow that is enclosed by gardens
is meadow as well, and is fenced off like any other.

How long is the fence?

**Input**

The first line holds `h` and `w` (1 ≤ h, w ≤ 400). Each of the next `h` lines holds `w` characters `#` or `.`.

**Output**

One integer: the total length of the fence.
""",
    reference="""
import sys


def main():
    data = sys.stdin.read().split()
    rows = data[2:]
    fence = 4 * sum(row.count("#") for row in rows)
    for row in rows:
        fence -= 2 * sum(a == b == "#" for a, b in zip(row, row[1:]))
    for upper, lower in zip(rows, rows[1:]):
        fence -= 2 * sum(a == b == "#" for a, b in zip(upper, lower))
    print(fence)


main()
""",
    brute="""
h, w = map(int, input().split())
grid = [input() for _ in range(h)]
fence = 0
for y in range(h):
    for x in range(w):
        if grid[y][x] == "#":
            for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0)):
                ny, nx = y + dy, x + dx
                if not (0 <= ny < h and 0 <= nx < w) or grid[ny][nx] == ".":
                    fence += 1
print(fence)
""",
    public=[text((3, 4), "##..", "#...", "...#"), text((3, 3), "###", "#.#", "###")],
    edges=[text((1, 1), "."), text((1, 1), "#"), text((1, 6), "##.###"), text((5, 1), *"##.##")],
    small=lambda rng: _case(rng, rng.randint(1, 5), rng.randint(1, 6), 0.6),
    large=lambda rng: [_case(rng, 400, 400, 0.97), _case(rng, 100, 320, 0.5)],
)
