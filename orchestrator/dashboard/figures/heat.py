"""Tables of shares as colours: models by problems, difficulties by months. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.dashboard.figures.figure import Figure, Key, Shape, Tick, spread_labels

STEPS = 5
"""Colours are in steps, each with a class of its own: styles in a page are not allowed."""


@dataclass(frozen=True)
class HeatCell:
    """A share between 0 and 1, or nothing."""

    share: float | None
    tip: str
    href: str = ""


def css_of(value: float | None) -> str:
    return "h-none" if value is None else f"h{min(STEPS, max(0, round(STEPS * value)))}"


def heat_map(
    key: str,
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[HeatCell]],
    *,
    note: str = "",
    corner: str = "",
    column_links: Sequence[str] = (),
    labelled: bool = True,
) -> Figure | None:
    """None for fewer than two columns. `labelled`: the columns have names below them."""
    if not rows or len(columns) < 2:
        return None
    wide, tall = 100 / len(columns), 100 / len(rows)
    gap = 0.12 if len(columns) <= 60 else 0.0
    shapes = [
        Shape(
            "rect", css_of(cell.share), round(wide * (x + gap / 2), 3), round(tall * (y + 0.06), 3),
            round(wide * (1 - gap), 3), round(tall * 0.88, 3), tip=cell.tip, href=cell.href,
        )
        for y, line in enumerate(cells)
        for x, cell in enumerate(line)
        if cell.share is not None
    ]  # fmt: skip
    y_ticks = [Tick(round(tall * (index + 0.5), 3), name[:26]) for index, name in enumerate(rows)]
    # Turned, so that the table has a row for each of the many columns.
    table = [
        [name, *("" if line[index].share is None else round(line[index].share or 0.0, 4) for line in cells)]
        for index, name in enumerate(columns)
    ]
    legend = [Key("h0", "0 %"), Key("h3", "about half"), Key("h5", "100 %")]
    words = f"{title}: {len(rows)} rows and {len(columns)} columns"
    x_ticks = spread_labels(columns) if labelled else []
    return Figure(
        key, title, words, shapes, x_ticks, y_ticks, [corner, *rows], table, legend, note, size="names heat",
        height=len(rows), links=column_links,
    )  # fmt: skip
