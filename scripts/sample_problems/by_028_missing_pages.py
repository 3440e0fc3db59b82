"""Gaps in a set of page numbers."""

from random import Random

from .definition import Case, Problem


def _case(rng: Random, n: int, last: int) -> Case:
    return [rng.randint(-1, last + 3) for _ in range(n)], last


PROBLEM = Problem(
    title="Missing Pages",
    difficulty="easy",
    date="2025-05-11",
    signature="missingPages(pages: list[int], last: int) -> list[list[int]]",
    statement="""
An archive scanned a book whose pages are numbered 1 to `last`. The list `pages` holds the page numbers found in the scans:
in any order, possibly several times, and possibly misread numbers outside 1 to `last`, which are to be ignored.

Return the stretches of pages that are missing, in ascending order, each as `[first, last]` and as long as possible; a
single missing page `p` is `[p, p]`. If no page is missing return an empty list.

**Limits**

- 0 ≤ len(pages) ≤ 20000
- 1 ≤ last ≤ 10^9
- -10^9 ≤ pages[i] ≤ 2·10^9
""",
    reference="""
class Solution:
    def missingPages(self, pages: list[int], last: int) -> list[list[int]]:
        gaps, expected = [], 1
        for page in sorted(set(pages)):
            if page < 1 or page > last:
                continue
            if page > expected:
                gaps.append([expected, page - 1])
            expected = page + 1
        if expected <= last:
            gaps.append([expected, last])
        return gaps
""",
    brute="""
class Solution:
    def missingPages(self, pages, last):
        have = set(pages)
        gaps = []
        for page in range(1, last + 1):
            if page not in have:
                if gaps and gaps[-1][1] == page - 1:
                    gaps[-1][1] = page
                else:
                    gaps.append([page, page])
        return gaps
""",
    public=[([2, 3, 7, 3], 9), ([1, 2], 2), ([], 4)],
    edges=[([0, 5], 4), ([1], 1), ([2], 2), ([4, 3, 2, 1], 4), ([-5, 10], 10)],
    small=lambda rng: _case(rng, rng.randint(0, 8), rng.randint(1, 10)),
    large=lambda rng: [_case(rng, 4000, 2500), ([10**9, 1, 2 * 10**9, 5 * 10**8], 10**9)],
)
