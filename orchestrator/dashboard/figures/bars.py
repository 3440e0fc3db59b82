"""Stacked bars over days or other equal steps, and histograms. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.dashboard.figures.figure import (
    Cell,
    Figure,
    Format,
    Key,
    Shape,
    nice_step,
    plain,
    share,
    spread_labels,
    ticks_from_zero,
)

FILL = 0.78
"""The part of a step that its bar takes."""
WIDEST = 12.0
"""In percent: the bars of a few days are no walls."""
BINS = 16
TAIL = 0.98
"""A histogram's last bar holds what is above this quantile, so that one slow call does not flatten the rest."""


@dataclass(frozen=True)
class Part:
    """One colour of the bars, with a value for each of them."""

    label: str
    css: str
    values: Sequence[float]


def stacked(
    key: str,
    title: str,
    labels: Sequence[str],
    parts: Sequence[Part],
    *,
    show: Format = plain,
    shares: bool = False,
    step_name: str = "Day",
    note: str = "",
    y_title: str = "",
    links: Sequence[str] = (),
) -> Figure | None:
    """None if there is nothing to show. `shares`: all bars are of equal height, their parts are shares."""
    parts = [part for part in parts if any(part.values)]
    totals = [sum(part.values[index] for part in parts) for index in range(len(labels))]
    if not any(totals):
        return None
    top, y_ticks = ticks_from_zero(
        1.0 if shares else max(totals), share if shares else show, whole=show is plain and not shares
    )
    width = 100 / len(labels)
    fill = min(FILL, WIDEST / width)
    shapes = []
    for index, label in enumerate(labels):
        base = 100.0
        for part in parts:
            value = part.values[index]
            if not value:
                continue
            high = 100 * value / (totals[index] if shares else top)
            base -= high
            name = f"{label}: {part.label} {show(value)}" if len(parts) > 1 else f"{label}: {show(value)}"
            if shares:
                name += f" of {show(totals[index])} ({share(value / totals[index])})"
            x = round(width * (index + (1 - fill) / 2), 3)
            href = links[index] if links else ""
            shapes.append(
                Shape("rect", part.css, x, round(base, 3), round(width * fill, 3), round(high, 3), tip=name, href=href)
            )
    columns = [step_name, *(part.label for part in parts)]
    rows: list[list[Cell]] = [[label, *(part.values[index] for part in parts)] for index, label in enumerate(labels)]
    words = f"{title}, {labels[0]} to {labels[-1]}: {show(sum(totals))} in all, {show(max(totals))} at most"
    legend = [Key(part.css, part.label) for part in parts] if len(parts) > 1 else []
    return Figure(
        key, title, words, shapes, spread_labels(labels), y_ticks, columns, rows, legend, note, y_title=y_title, links=links
    )


def histogram(
    key: str, title: str, values: Sequence[float], show: Format, *, x_title: str = "", note: str = ""
) -> Figure | None:
    """How many values are in each of some equal ranges. None for fewer than five."""
    if len(values) < 5:
        return None
    ordered = sorted(values)
    top = ordered[min(len(ordered) - 1, math.ceil(TAIL * len(ordered)) - 1)] or ordered[-1]
    step = nice_step(top or 1.0, BINS)
    count = max(1, math.ceil(top / step - 1e-9))
    counts = [0] * (count + 1)
    for value in ordered:
        counts[min(count, max(0, math.ceil(value / step - 1e-9) - 1))] += 1
    above = counts.pop()
    ranges = [f"{show(step * index)} to {show(step * (index + 1))}" for index in range(count)]
    if above:
        counts.append(above)
        ranges.append(f"above {show(step * count)}")
    high, y_ticks = ticks_from_zero(max(counts), plain, whole=True)
    width = 100 / len(counts)
    shapes = [
        Shape(
            "rect", "c1" if index < count else "c0", round(width * (index + 0.04), 3), round(100 - 100 * number / high, 3),
            round(width * 0.92, 3), round(100 * number / high, 3), tip=f"{ranges[index]}: {number:,}",
        )
        for index, number in enumerate(counts)
        if number
    ]  # fmt: skip
    median = ordered[len(ordered) // 2]
    tail = ordered[min(len(ordered) - 1, math.ceil(0.95 * len(ordered)) - 1)]
    words = f"median {show(median)}, 95th percentile {show(tail)}, {len(ordered):,} values"
    x_ticks = spread_labels([text.split(" to ")[0].replace("above ", "> ") for text in ranges], most=6)
    rows: list[list[Cell]] = [[text, number] for text, number in zip(ranges, counts, strict=True)]
    return Figure(
        key, title, f"{title}: {words}", shapes, x_ticks, y_ticks, [x_title or "Range", "Count"], rows, note=note or words,
        x_title=x_title, size="low",
    )  # fmt: skip
