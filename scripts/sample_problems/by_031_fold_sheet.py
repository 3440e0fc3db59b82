"""Fold a sheet of numbers; an odd middle line stays where it is."""

from random import Random

from .definition import Case, Problem


def _case(rng: Random, high: int, wide: int, folds: int) -> Case:
    sheet = [[rng.randint(-9, 9) for _ in range(wide)] for _ in range(high)]
    return sheet, "".join(rng.choice("LU") for _ in range(folds))


PROBLEM = Problem(
    title="Fold the Sheet",
    difficulty="medium",
    date="2026-04-12",
    signature="foldSheet(sheet: list[list[int]], folds: str) -> list[list[int]]",
    statement="""
A sheet of squared paper holds one number per square, given as the rows of `sheet`. It is folded as `folds` says, one
letter after the other:

- `L`: the left half is folded over onto the right half, so that the first column lands on the last one, the second on
  the last but one, and so on. If the number of columns is odd, the middle column stays and becomes the new first column.
- `U`: the upper half is folded down onto the lower half in the same way; an odd middle row becomes the new first row.

Numbers that come to lie on the same square are added. A sheet that is one column wide is not changed by `L`, and one that
is one row high is not changed by `U`.

Return the folded sheet as a list of rows.

**Limits**

- 1 ≤ rows, columns ≤ 100
- 0 ≤ len(folds) ≤ 20
- -10^6 ≤ sheet[i][j] ≤ 10^6
""",
    reference="""
class Solution:
    def foldSheet(self, sheet: list[list[int]], folds: str) -> list[list[int]]:
        def fold_left(rows):
            folded = []
            for row in rows:
                half = len(row) // 2
                kept = row[half:]
                for i in range(half):
                    kept[len(kept) - 1 - i] += row[i]
                folded.append(kept)
            return folded

        def turn(rows):
            return [list(column) for column in zip(*rows)]

        for fold in folds:
            sheet = fold_left(sheet) if fold == "L" else turn(fold_left(turn(sheet)))
        return sheet
""",
    brute="""
class Solution:
    def foldSheet(self, sheet, folds):
        h, w = len(sheet), len(sheet[0])
        cells = {(y, x): sheet[y][x] for y in range(h) for x in range(w)}
        for fold in folds:
            moved = {}
            cut_x = w // 2 if fold == "L" else 0
            cut_y = h // 2 if fold == "U" else 0
            for (y, x), value in cells.items():
                if x < cut_x:
                    x = w - 1 - x
                if y < cut_y:
                    y = h - 1 - y
                place = (y - cut_y, x - cut_x)
                moved[place] = moved.get(place, 0) + value
            cells, h, w = moved, h - cut_y, w - cut_x
        return [[cells[y, x] for x in range(w)] for y in range(h)]
""",
    public=[([[1, 2, 3, 4], [5, 6, 7, 8]], "L"), ([[1, 2, 3]], "L"), ([[1], [2], [4]], "UL")],
    edges=[([[5]], "LULU"), ([[1, 2], [3, 4]], ""), ([[1, 2], [3, 4]], "LU"), ([[1, -1, 1, -1, 1]], "LLL")],
    small=lambda rng: _case(rng, rng.randint(1, 5), rng.randint(1, 5), rng.randint(0, 4)),
    large=lambda rng: [_case(rng, 40, 37, 3), _case(rng, 60, 50, 20)],
)
