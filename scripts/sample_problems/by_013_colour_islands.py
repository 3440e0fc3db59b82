"""Connected regions of equal letters; one region may be far longer than a call stack."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, high: int, wide: int, letters: str) -> str:
    return text((high, wide), *("".join(rng.choice(letters) for _ in range(wide)) for _ in range(high)))


def _snake(high: int, wide: int) -> str:
    turn_right, turn_left = "z" * (wide - 1) + "a", "a" + "z" * (wide - 1)
    rows = ["a" * wide, turn_right, "a" * wide, turn_left]
    return text((high, wide), *(rows[y % 4] for y in range(high)))


PROBLEM = Problem(
    title="Islands of Colour",
    difficulty="medium",
    date="2024-06-30",
    statement="""
A mosaic has `h` rows of `w` tiles; the letter of a tile is its colour. Tiles of one colour that touch along a side belong
to the same island, and so do all tiles that are connected through such neighbours. Every tile belongs to one island, if
need be to an island of one tile.

**Input**

The first line holds `h` and `w` (1 ≤ h, w ≤ 500). Each of the next `h` lines holds `w` lower-case letters.

**Output**

On one line: the number of islands, the size of the largest island, and its colour. If several islands have the largest
size, give the colour that comes first in the alphabet.
""",
    reference="""
import sys


def main():
    data = sys.stdin.read().split()
    wide = int(data[1]) + 1
    tiles = list(".".join(data[2:]) + "." + "." * wide)
    islands, best = 0, (0, "")
    for start in range(len(tiles)):
        colour = tiles[start]
        if colour == ".":
            continue
        islands += 1
        size, stack = 0, [start]
        tiles[start] = "."
        while stack:
            at = stack.pop()
            size += 1
            for near in (at - 1, at + 1, at - wide, at + wide):
                if near >= 0 and tiles[near] == colour:
                    tiles[near] = "."
                    stack.append(near)
        best = min(best, (-size, colour))
    print(islands, -best[0], best[1])


main()
""",
    brute="""
h, w = map(int, input().split())
grid = [input().strip() for _ in range(h)]
label = [[y * w + x for x in range(w)] for y in range(h)]
changed = True
while changed:
    changed = False
    for y in range(h):
        for x in range(w):
            for ny, nx in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
                if 0 <= ny < h and 0 <= nx < w and grid[y][x] == grid[ny][nx] and label[ny][nx] < label[y][x]:
                    label[y][x] = label[ny][nx]
                    changed = True
sizes = {}
for row in label:
    for mark in row:
        sizes[mark] = sizes.get(mark, 0) + 1
top = max(sizes.values())
print(len(sizes), top, min(grid[mark // w][mark % w] for mark in sizes if sizes[mark] == top))
""",
    public=[text((3, 4), "aabb", "abba", "ccca"), text((2, 2), "zy", "yz")],
    edges=[text((1, 1), "q"), text((1, 5), "bbaab"), text((4, 1), *"bbaa"), text((3, 3), "aaa", "aba", "aaa")],
    small=lambda rng: _case(rng, rng.randint(1, 5), rng.randint(1, 5), "abc"),
    large=lambda rng: [_case(rng, 60, 90, "ab"), _snake(500, 500), _case(rng, 300, 400, "xy")],
)
