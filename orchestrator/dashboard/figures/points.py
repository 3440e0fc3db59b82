"""Values over time with their intervals, cost against score, and intervals one below the other (a forest plot). Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from orchestrator.dashboard.figures.figure import (
    Cell,
    Figure,
    Format,
    Key,
    Shape,
    Tick,
    dollars,
    nice_step,
    share,
    ticks_between,
    time_ticks,
)

COLOURS = 6
STEPS = (0, -1, 1, -2, 2, -3, 3)
"""Where a name is tried, in lines below its point."""
CHARACTER, LINE = 1.7, 8.0
"""Width and height of a name in percent of a drawing of usual size, a little generous."""


@dataclass(frozen=True)
class Timed:
    """A value measured at some time."""

    at: datetime
    value: float
    low: float
    high: float
    tip: str
    href: str


@dataclass(frozen=True)
class Priced:
    """A model with its score and what it cost."""

    name: str
    cost: float
    value: float
    low: float
    high: float
    href: str = ""


@dataclass(frozen=True)
class Estimate:
    """A value with its interval, in a row of its own."""

    name: str
    value: float
    low: float
    high: float
    group: int = 0
    """Rows of one group have a common background."""
    href: str = ""
    note: str = ""


def over_time(key: str, title: str, series: Sequence[tuple[str, Sequence[Timed]]], *, note: str = "") -> Figure | None:
    """One line per series, oldest value first. None without two values."""
    series = [(name, points) for name, points in series if points]
    every = [point for _, points in series for point in points]
    if len(every) < 2:
        return None
    first, last = min(point.at for point in every), max(point.at for point in every)
    span = (last - first).total_seconds() or 1.0
    low, high = _range(min(point.low for point in every), max(point.high for point in every))

    def x(at: datetime) -> float:
        return round(1.5 + 97 * (at - first).total_seconds() / span, 2)

    def y(value: float) -> float:
        return round(100 * (high - value) / (high - low), 2)

    shapes: list[Shape] = []
    for number, (name, points) in enumerate(series):
        css = f"c{number % COLOURS + 1}"
        for before, after in pairwise(points):
            shapes.append(Shape("line", css, x(before.at), y(before.value), x(after.at), y(after.value)))
        for point in points:
            tip = f"{name}: {point.tip}" if len(series) > 1 else point.tip
            shapes.append(Shape("line", f"{css} whisker", x(point.at), y(point.low), x(point.at), y(point.high)))
            shapes.append(Shape("dot", css, x(point.at), y(point.value), tip=tip, href=point.href))
    ticks = [Tick(y(value), label) for value, label in ticks_between(low, high, share)]
    rows: list[list[Cell]] = [
        [name, point.at.strftime("%Y-%m-%d %H:%M"), round(point.value, 6), round(point.low, 6), round(point.high, 6)]
        for name, points in series
        for point in points
    ]
    words = "; ".join(f"{name}: {len(p)} values, from {share(p[0].value)} to {share(p[-1].value)}" for name, p in series)
    legend = [Key(f"c{number % COLOURS + 1}", name) for number, (name, _) in enumerate(series)] if len(series) > 1 else []
    columns = ["Series", "Time (UTC)", "Score", "Low", "High"]
    x_ticks = [Tick(1.5 + 0.97 * tick.at, tick.label, tick.anchor, tick.minor) for tick in time_ticks(first, last)]
    links = [point.href for point in every]
    return Figure(key, title, f"{title}. {words}", shapes, x_ticks, ticks, columns, rows, legend, note, links=links)


def pareto(points: Sequence[Priced]) -> list[Priced]:
    """Those that no other point beats in both cost and value, cheapest first."""
    best: list[Priced] = []
    for point in sorted(points, key=lambda point: (point.cost, -point.value)):
        if not best or point.value > best[-1].value:
            best.append(point)
    return best


def cost_against_score(key: str, title: str, points: Sequence[Priced], *, note: str = "") -> Figure | None:
    """None for fewer than two models with a known cost. The axis of costs is logarithmic if they differ much."""
    if len(points) < 2:
        return None
    logarithmic = min(point.cost for point in points) > 0 and max(p.cost for p in points) > 20 * min(p.cost for p in points)
    place = math.log10 if logarithmic else float
    costs = [place(point.cost) for point in points]
    left = min(costs) if logarithmic else 0.0
    right = max(costs)
    margin = 0.12 * ((right - left) or abs(right) or 1.0)
    left, right = (left - margin, right + margin) if logarithmic else (0.0, right + margin or 1.0)
    low, high = _range(min(point.low for point in points), max(point.high for point in points))

    def x(cost: float) -> float:
        return round(100 * (place(cost) - left) / (right - left), 2)

    def y(value: float) -> float:
        return round(100 * (high - value) / (high - low), 2)

    front = pareto(points)
    shapes = [Shape("line", "front", x(one.cost), y(one.value), x(two.cost), y(two.value)) for one, two in pairwise(front)]
    for point in points:
        css = "c1" if point in front else "c0"
        tip = (
            f"{point.name}: {share(point.value)} ({share(point.low)} to {share(point.high)}), {dollars(point.cost)} per item"
        )
        shapes.append(Shape("line", f"{css} whisker", x(point.cost), y(point.low), x(point.cost), y(point.high)))
        shapes.append(Shape("dot", css, x(point.cost), y(point.value), tip=tip, href=point.href))
    shapes += _labels([(x(point.cost), y(point.value), _short(point.name, 22)) for point in points])
    if logarithmic:
        powers = range(math.floor(left), math.ceil(right) + 1)
        marks = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
        x_ticks = [Tick(x(mark), dollars(mark)) for mark in marks if left <= math.log10(mark) <= right]
        x_ticks = x_ticks[:: max(1, math.ceil(len(x_ticks) / 6))]
    else:
        x_ticks = [Tick(x(value), label) for value, label in ticks_between(left, right, dollars)]
    rows: list[list[Cell]] = [
        [point.name, round(point.cost, 8), round(point.value, 6), round(point.low, 6), round(point.high, 6)]
        for point in sorted(points, key=lambda point: point.cost)
    ]
    columns = ["Model", "Cost per item (USD)", "Score", "Low", "High"]
    words = f"{title}: no model is both cheaper and better than {', '.join(point.name for point in front)}"
    legend = [Key("c1", "no other is cheaper and better"), Key("c0", "another is cheaper and better")]
    y_ticks = [Tick(y(value), label) for value, label in ticks_between(low, high, share)]
    return Figure(
        key, title, words, shapes, x_ticks, y_ticks, columns, rows, legend, note,
        x_title="cost per item" + (", logarithmic" if logarithmic else ""), size="tall",
    )  # fmt: skip


def _labels(points: Sequence[tuple[float, float, str]]) -> list[Shape]:
    """A name beside each point: to the right, or where it covers no other name or point."""
    taken = [(x - 1.5, y - 3.0, x + 1.5, y + 3.0) for x, y, _ in points]
    shapes = []
    for x, y, name in points:
        width = CHARACTER * len(name)
        places = [
            (css, at, (left, at - LINE / 2 - 2, left + width, at + LINE / 2 - 2))
            for at in (y + step * LINE for step in STEPS)
            for css, left in (("label", x + 2), ("label end", x - 2 - width))
            if left >= 0 and left + width <= 104
        ] or [("label", y, (x, y, x, y))]
        css, at, box = next((place for place in places if not _meets(place[2], taken)), places[0])
        taken.append(box)
        shapes.append(Shape("text", css, x, round(at, 2), text=name))
    return shapes


def _meets(box: tuple[float, ...], others: Sequence[tuple[float, ...]]) -> bool:
    return any(box[0] < it[2] and it[0] < box[2] and box[1] < it[3] and it[1] < box[3] for it in others)


def forest(key: str, title: str, rows: Sequence[Estimate], show: Format = share, *, note: str = "") -> Figure | None:
    """One row per value, the first on top."""
    if not rows:
        return None
    low, high = _range(min(row.low for row in rows), max(row.high for row in rows))
    each = 100 / len(rows)

    def x(value: float) -> float:
        return round(100 * (value - low) / (high - low), 2)

    shapes: list[Shape] = []
    groups = list(dict.fromkeys(row.group for row in rows))
    for number, group in enumerate(groups):
        members = [index for index, row in enumerate(rows) if row.group == group]
        if number % 2 == 0 and len(groups) > 1:
            shapes.append(Shape("rect", "strip", 0, round(each * members[0], 3), 100, round(each * len(members), 3)))
    for index, row in enumerate(rows):
        middle = round(each * (index + 0.5), 3)
        tip = f"{row.name}: {show(row.value)} ({show(row.low)} to {show(row.high)})" + (f", {row.note}" if row.note else "")
        shapes.append(Shape("line", "c1 interval", x(row.low), middle, x(row.high), middle))
        shapes.append(Shape("diamond", "c1", x(row.value), middle, tip=tip, href=row.href))
    y_ticks = [Tick(round(each * (index + 0.5), 3), _short(row.name, 26)) for index, row in enumerate(rows)]
    x_ticks = [Tick(x(value), label) for value, label in ticks_between(low, high, show)]
    table: list[list[Cell]] = [
        [row.name, round(row.value, 6), round(row.low, 6), round(row.high, 6), row.note] for row in rows
    ]
    words = f"{title}: " + ", ".join(f"{row.name} {show(row.value)}" for row in rows[:20])
    return Figure(
        key, title, words, shapes, x_ticks, y_ticks, ["Model", "Score", "Low", "High", "Note"], table, note=note,
        size="names", height=len(rows), links=[row.href for row in rows],
    )  # fmt: skip


def _range(low: float, high: float) -> tuple[float, float]:
    """Ends of an axis of shares, a little wider than what is on it, never beyond 0 and 1."""
    step = nice_step((high - low) or 0.1, 5)
    low, high = max(0.0, math.floor(low / step) * step), min(1.0, math.ceil(high / step) * step)
    return (low, high) if high - low > 1e-9 else (max(0.0, low - 0.05), min(1.0, high + 0.05))


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
