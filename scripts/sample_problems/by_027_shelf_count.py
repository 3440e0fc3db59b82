"""Fill shelves in order; between two books stands a divider."""

from random import Random

from .definition import Case, Problem


def _case(rng: Random, n: int, top: int) -> Case:
    return [rng.randint(1, top) for _ in range(n)], rng.randint(top - 1, 3 * top)


PROBLEM = Problem(
    title="Shelf Count",
    difficulty="easy",
    date="2025-03-23",
    signature="shelfCount(widths: list[int], shelf: int) -> int",
    statement="""
Books are put on shelves in the order of the list `widths`. Between two neighbouring books on a shelf stands a divider of
width 1; there is none before the first book and none after the last book of a shelf. A book goes on the current shelf if
it still fits there with its divider, otherwise it starts a new shelf. Each shelf has the width `shelf`.

Return the number of shelves that are used, or `-1` if some book is wider than a shelf. No books need no shelf.

**Limits**

- 0 ≤ len(widths) ≤ 10000
- 1 ≤ widths[i], shelf ≤ 10^9
""",
    reference="""
class Solution:
    def shelfCount(self, widths: list[int], shelf: int) -> int:
        shelves, used = 0, shelf
        for width in widths:
            if width > shelf:
                return -1
            if used + 1 + width <= shelf:
                used += 1 + width
            else:
                shelves += 1
                used = width
        return shelves
""",
    brute="""
class Solution:
    def shelfCount(self, widths, shelf):
        rows = []
        for w in widths:
            if rows and sum(rows[-1]) + len(rows[-1]) + w <= shelf:
                rows[-1].append(w)
            else:
                rows.append([w])
        return -1 if any(sum(row) > shelf for row in rows) else len(rows)
""",
    public=[([3, 4, 2, 5], 9), ([2, 8, 1], 7)],
    edges=[([], 1), ([1], 1), ([1, 1], 2), ([1, 1], 3), ([5, 5, 5], 5), ([1, 2, 3, 10**9], 10**9 - 1)],
    small=lambda rng: _case(rng, rng.randint(1, 9), 6),
    large=lambda rng: [_case(rng, 3000, 50), _case(rng, 1000, 10**8)],
)
