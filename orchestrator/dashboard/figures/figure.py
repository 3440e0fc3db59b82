"""A chart as shapes in percent of its drawing area, and as the table behind it. Pure: the template draws, and where there is
script, the browser adds a hover box and saves PNG and CSV. Positions in percent keep texts readable on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

Format = Callable[[float], str]
Cell = str | float | int | None


@dataclass(frozen=True)
class Shape:
    """A `rect` (x, y, w, h), a `line` (from x, y to w, h), a `dot` or `diamond` (x, y), or a `text` at x, y."""

    kind: str
    css: str
    x: float
    y: float
    w: float = 0.0
    h: float = 0.0
    tip: str = ""
    """For the hover box and as a title."""
    href: str = ""
    text: str = ""


@dataclass(frozen=True)
class Tick:
    at: float
    label: str
    anchor: str = "middle"
    minor: bool = False
    """Left out on a narrow screen."""


@dataclass(frozen=True)
class Key:
    """An entry of the legend."""

    css: str
    label: str


@dataclass(frozen=True)
class Figure:
    key: str
    """Part of ids and file names."""
    title: str
    words: str
    """The content in one sentence, for screen readers."""
    shapes: Sequence[Shape]
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    """The data as a table; also what CSV has."""
    legend: Sequence[Key] = ()
    note: str = ""
    x_title: str = ""
    y_title: str = ""
    size: str = ""
    """A class of the drawing: `low`, `tall`, or `names` for long texts left of it."""
    links: Sequence[str] = field(default=())
    """The address of each row of the table, if it has one."""
    height: int = 0
    """The number of rows of a chart that grows with them; 0 for a fixed height."""


def nice_step(span: float, most: int = 5) -> float:
    """A step of 1, 2 or 5 times a power of ten that divides the span into at most so many parts."""
    raw = span / max(most, 1)
    if raw <= 0:
        return 1.0
    power: float = 10 ** math.floor(math.log10(raw))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * (1 - 1e-9))


def ticks_from_zero(top: float, show: Format, most: int = 4, *, whole: bool = False) -> tuple[float, list[Tick]]:
    """The upper end of an axis that begins at zero, and its ticks from below (100) to above (0). `whole`: of counts."""
    step = nice_step(top or 1.0, most)
    step = max(step, 1.0) if whole else step
    count = max(1, math.ceil((top or 1.0) / step - 1e-9))
    return step * count, [Tick(100 - 100 * index / count, show(step * index)) for index in range(count + 1)]


def ticks_between(low: float, high: float, show: Format, most: int = 5) -> list[tuple[float, str]]:
    """Round values within an interval, with their labels."""
    step = nice_step(high - low, most)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [(step * index, show(step * index)) for index in range(first, last + 1)]


def spread_labels(labels: Sequence[str], most: int = 7) -> list[Tick]:
    """Ticks below bars of equal width; where there are many, or they are long, only some have a label."""
    count = len(labels)
    most = min(most, 4) if max(map(len, labels)) > 8 else most
    every = max(1, math.ceil(count / most))
    shown = [index for index in range(count) if (count - 1 - index) % every == 0]
    return [
        Tick(
            round(100 * (index + 0.5) / count, 2), labels[index], minor=len(shown) > 4 and place % 2 != (len(shown) - 1) % 2
        )
        for place, index in enumerate(shown)
    ]


def time_ticks(first: datetime, last: datetime, most: int = 5) -> list[Tick]:
    span = (last - first).total_seconds()
    if span <= 0:
        return [Tick(50, first.strftime("%b %d %H:%M"))]
    form = "%H:%M" if span < 86_400 else "%b %d" if span < 300 * 86_400 else "%Y-%m"
    moments = [first + timedelta(seconds=span * index / (most - 1)) for index in range(most)]
    labels = [moment.strftime(form) for moment in moments]
    return [
        Tick(
            100 * index / (most - 1),
            label,
            "start" if not index else "end" if index == most - 1 else "middle",
            minor=index % 2 == 1,
        )
        for index, label in enumerate(labels)
        if not index or label != labels[index - 1]
    ]


def share(value: float) -> str:
    return f"{100 * value:.0f} %"


def plain(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"


def dollars(value: float) -> str:
    if value == 0:
        return "$0"
    if value >= 100:
        return f"${value:,.0f}"
    return f"${value:.2f}" if value >= 0.01 else f"${value:.2g}"
