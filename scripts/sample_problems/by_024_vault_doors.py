"""Breadth-first search over place and keys held."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, high: int, wide: int, tiles: str) -> str:
    cells = [rng.choice(tiles) for _ in range(high * wide)]
    start, end = rng.sample(range(high * wide), 2)
    cells[start], cells[end] = "S", "E"
    return text((high, wide), *("".join(cells[y * wide : (y + 1) * wide]) for y in range(high)))


PROBLEM = Problem(
    title="Vault Doors",
    difficulty="hard",
    date="2025-05-25",
    statement="""
A vault is a grid of cells: `#` is a wall, `.` is floor, `S` the start and `E` the exit. The letters `a` to `d` are keys,
the letters `A` to `D` are doors; a door can be entered only by someone who holds the key of the same letter. A key is
picked up by stepping on it and opens any number of doors of its letter; there may be several keys and doors of a letter.
A step leads to one of the four neighbouring cells.

How many steps does it take to get from `S` to `E`? Cells may be visited more than once.

**Input**

The first line holds `h` and `w` (1 ≤ h, w ≤ 60). Each of the next `h` lines holds `w` characters. There is exactly one
`S` and exactly one `E`.

**Output**

The least number of steps, or `-1` if the exit cannot be reached.
""",
    reference="""
import sys


def main():
    data = sys.stdin.read().split()
    high, wide = int(data[0]), int(data[1]) + 1
    cells = "#".join(data[2:]) + "#" * (wide + 1)
    start, end = cells.index("S"), cells.index("E")
    seen = {(start, 0)}
    front, steps = [(start, 0)], 0
    while front:
        following = []
        for at, keys in front:
            if at == end:
                print(steps)
                return
            for near in (at - 1, at + 1, at - wide, at + wide):
                cell = cells[near] if near >= 0 else "#"
                if cell == "#":
                    continue
                held = keys
                if "A" <= cell <= "D" and not keys >> (ord(cell) - 65) & 1:
                    continue
                if "a" <= cell <= "d":
                    held |= 1 << (ord(cell) - 97)
                if (near, held) not in seen:
                    seen.add((near, held))
                    following.append((near, held))
        front = following
        steps += 1
    print(-1)


main()
""",
    brute="""
h, w = map(int, input().split())
grid = [input() for _ in range(h)]
INF = 10**9
steps = {}
for y in range(h):
    for x in range(w):
        if grid[y][x] == "S":
            steps[y, x, frozenset()] = 0
changed = True
while changed:
    changed = False
    for (y, x, keys), count in list(steps.items()):
        for ny, nx in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
            if 0 <= ny < h and 0 <= nx < w and grid[ny][nx] != "#":
                cell = grid[ny][nx]
                if cell in "ABCD" and cell.lower() not in keys:
                    continue
                state = (ny, nx, keys | {cell} if cell in "abcd" else keys)
                if count + 1 < steps.get(state, INF):
                    steps[state] = count + 1
                    changed = True
found = [count for (y, x, _), count in steps.items() if grid[y][x] == "E"]
print(min(found, default=-1))
""",
    public=[text((3, 5), "S.A.E", "#.###", "..a.."), text((1, 4), "SB.E"), text((2, 3), "S.b", "#BE")],
    edges=[
        text((1, 2), "ES"),
        text((2, 1), "S", "E"),
        text((1, 7), "a.S.A.E"),
        text((3, 3), "S#E", "###", "abc"),
        text((1, 8), "bAS.aBDE"),
    ],
    small=lambda rng: _case(rng, rng.randint(1, 4), rng.randint(2, 5), "....##aAbBcD"),
    large=lambda rng: [
        _case(rng, 60, 60, "......###aAbBcCdD"),
        _case(rng, 60, 60, "....##ABCD#.a....."),
        _case(rng, 50, 60, ".........###abcdABCDABCD"),
    ],
)
