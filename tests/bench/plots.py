"""Series as an SVG file that stands alone: lines over a linear or logarithmic axis, with a legend. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from orchestrator.dashboard.figures.figure import nice_step, plain

Points = Sequence[tuple[float, float]]
COLOURS = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#0891b2", "#be185d", "#4d7c0f", "#475569")
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 720, 66, 14, 34, 42
LINE_HEIGHT = 16


@dataclass(frozen=True)
class Axis:
    """Where a value lies between 0 and 1, and the values that have a label."""

    title: str
    low: float
    high: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        if self.logarithmic:
            return (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        if self.logarithmic:
            return [10.0**power for power in range(round(math.log10(self.low)), round(math.log10(self.high)) + 1)]
        step = nice_step(self.high - self.low)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [step * number for number in range(first, last + 1)]

    @classmethod
    def around(cls, title: str, values: Sequence[float], logarithmic: bool) -> Axis:
        """Whole powers of ten, or from zero."""
        if logarithmic:
            low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
            return cls(title, 10.0**low, 10.0 ** max(high, low + 1), True)
        top = max(values) or 1.0
        step = nice_step(top)
        return cls(title, 0.0, step * math.ceil(top / step - 1e-9))


def figure(
    title: str,
    series: Mapping[str, Points],
    *,
    x_title: str,
    y_title: str,
    logarithmic: bool = False,
    marks: bool = True,
    events: Sequence[float] = (),
    height: int = 320,
    show: Callable[[float], str] = plain,
) -> str:
    """One picture. `events` are moments on the horizontal axis with a thin line of their own."""
    every = [point for points in series.values() for point in points]
    across = Axis.around(x_title, [x for x, _ in every], logarithmic)
    up = Axis.around(y_title, [y for _, y in every], logarithmic)
    legend = _legend(list(series), height)
    whole = height + LINE_HEIGHT * len({y for _, y, _ in legend}) + 8
    right, low = WIDTH - RIGHT, height - BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        return round(LEFT + (right - LEFT) * across.at(x), 1), round(low - (low - TOP) * up.at(y), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {whole}" font-family="system-ui, sans-serif" '
        f'font-size="12" fill="#334155" role="img" aria-label="{escape(title)}">',
        f'<rect width="{WIDTH}" height="{whole}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="14" font-weight="600" fill="#0f172a">{escape(title)}</text>',
    ]
    for value in up.ticks():
        y = place(across.low, value)[1]
        parts.append(f'<path d="M{LEFT} {y}H{right}" stroke="#e2e8f0"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{escape(show(value))}</text>')
    for value in across.ticks():
        x = place(value, up.low)[0]
        parts.append(f'<path d="M{x} {low}v4" stroke="#94a3b8"/>')
        parts.append(f'<text x="{x}" y="{low + 17}" text-anchor="middle">{escape(plain(value))}</text>')
    parts.append(f'<text x="{right}" y="{low + 33}" text-anchor="end" fill="#64748b">{escape(x_title)}</text>')
    parts.append(f'<text x="{right}" y="20" text-anchor="end" fill="#64748b">{escape(y_title)}</text>')
    for moment in events:
        parts.append(f'<path d="M{place(moment, up.low)[0]} {TOP}V{low}" stroke="#94a3b8" stroke-dasharray="2 3"/>')
    for (name, points), (x, y, colour) in zip(series.items(), legend, strict=True):
        shown = [place(*point) for point in points]
        line = " ".join(f"{a:g},{b:g}" for a, b in shown)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        if marks:
            parts += [f'<circle cx="{a:g}" cy="{b:g}" r="3" fill="{colour}"/>' for a, b in shown]
        parts.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{x + 15}" y="{y}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _legend(names: Sequence[str], top: int) -> list[tuple[float, float, str]]:
    """Position and colour of each entry; wide entries go on a line of their own."""
    columns = 3 if max(map(len, names)) <= 30 else 2 if max(map(len, names)) <= 48 else 1
    width = (WIDTH - LEFT - RIGHT) / columns
    return [
        (round(LEFT + width * (index % columns), 1), top + 10 + LINE_HEIGHT * (index // columns), colour)
        for index, colour in enumerate(COLOURS[index % len(COLOURS)] for index in range(len(names)))
    ]


def stacked(pictures: Sequence[str]) -> str:
    """Several pictures of one width below each other, in one file."""
    parts, top = [], 0
    for picture in pictures:
        head, _, rest = picture.partition("\n")
        height = int(head.split('viewBox="')[1].split('"')[0].split()[3])
        parts.append(head.replace("<svg ", f'<svg y="{top}" width="{WIDTH}" height="{height}" ', 1) + "\n" + rest)
        top += height
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}">\n{"".join(parts)}</svg>\n'
