"""Area of a union of rectangles by a sweep over the edges."""

from random import Random

from .definition import Case, Problem


def _case(rng: Random, n: int, top: int, longest: int) -> Case:
    posters = []
    for _ in range(n):
        x, y = rng.randint(-top, top), rng.randint(-top, top)
        posters.append([x, y, x + rng.randint(1, longest), y + rng.randint(1, longest)])
    return (posters,)


PROBLEM = Problem(
    title="Poster Wall",
    difficulty="hard",
    date="2026-03-08",
    signature="posterArea(posters: list[list[int]]) -> int",
    statement="""
Posters are glued to a wall, partly one over another. Each poster is a rectangle `[x1, y1, x2, y2]` with `x1 < x2` and
`y1 < y2`: it covers all points with x between `x1` and `x2` and y between `y1` and `y2`.

Return the area of the wall that is covered by at least one poster.

**Limits**

- 0 ≤ len(posters) ≤ 500
- -10^9 ≤ x1 < x2 ≤ 10^9, -10^9 ≤ y1 < y2 ≤ 10^9
""",
    reference="""
class Solution:
    def posterArea(self, posters: list[list[int]]) -> int:
        edges = []
        for x1, y1, x2, y2 in posters:
            edges.append((x1, 1, y1, y2))
            edges.append((x2, -1, y1, y2))
        edges.sort()
        levels = sorted({y for edge in edges for y in edge[2:]})
        place = {y: i for i, y in enumerate(levels)}
        depth = [0] * len(levels)
        area = covered = before = 0
        for x, step, y1, y2 in edges:
            area += covered * (x - before)
            before = x
            for i in range(place[y1], place[y2]):
                if depth[i] == 0 and step == 1:
                    covered += levels[i + 1] - levels[i]
                depth[i] += step
                if depth[i] == 0 and step == -1:
                    covered -= levels[i + 1] - levels[i]
        return area
""",
    brute="""
class Solution:
    def posterArea(self, posters):
        cells = set()
        for x1, y1, x2, y2 in posters:
            for x in range(x1, x2):
                for y in range(y1, y2):
                    cells.add((x, y))
        return len(cells)
""",
    public=[([[0, 0, 4, 3], [2, 1, 6, 5]],), ([[0, 0, 1, 1], [1, 0, 2, 1]],), ([],)],
    edges=[
        ([[-(10**9), -(10**9), 10**9, 10**9]],),
        ([[0, 0, 9, 9], [2, 2, 3, 3]],),
        ([[1, 1, 2, 2]] * 4,),
        ([[0, 4, 10, 6], [4, 0, 6, 10]],),
    ],
    small=lambda rng: _case(rng, rng.randint(0, 6), 6, 6),
    large=lambda rng: [_case(rng, 150, 10**8, 10**8), _case(rng, 450, 900, 100), _case(rng, 300, 9 * 10**6, 10**6)],
)
