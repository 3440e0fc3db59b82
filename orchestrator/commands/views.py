"""Command benchmarks as pages show them: figures with a drawing of their repeats, and tables of ratios. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.commands.schemas import CommandsCompared, ComparedOut, FigureOut
from orchestrator.dashboard.texts import size

WIDTH, HEIGHT, MARGIN = 300.0, 60.0, 6.0
DASH = "–"
TAGS = {"better": "ok", "worse": "alarm"}


@dataclass(frozen=True)
class Dots:
    """Each repeat as a dot, within the band of the mean's interval."""

    places: list[tuple[float, float]]
    band: tuple[float, float] | None
    """Upper edge and height."""
    mean_y: float
    top: str
    bottom: str
    words: str


@dataclass(frozen=True)
class FigureView:
    name: str
    n: int
    mean: str
    interval: str
    median: str
    better: str
    dots: Dots | None


@dataclass(frozen=True)
class RatioRow:
    figure: str
    group: str
    mean: str
    against: str
    other: str
    ratio: str
    interval: str
    verdict: str
    tag: str


def value(number: float | None, unit: str) -> str:
    if number is None:
        return DASH
    return size(number) if unit == "B" else f"{number:.4g} {unit}".strip()


def figure_views(figures: Sequence[FigureOut]) -> list[FigureView]:
    return [
        FigureView(
            name=each.name,
            n=each.n,
            mean=value(each.mean, each.unit),
            interval=f"{value(each.low, each.unit)} to {value(each.high, each.unit)}" if each.low is not None else DASH,
            median=value(each.median, each.unit),
            better=each.better.value,
            dots=_dots(each),
        )
        for each in figures
    ]


def _dots(figure: FigureOut) -> Dots | None:
    if figure.n < 2:
        return None
    edges = [*figure.values, *(edge for edge in (figure.low, figure.high) if edge is not None)]
    low, high = min(edges), max(edges)
    span = (high - low) or abs(high) or 1.0

    def y(number: float) -> float:
        return round(MARGIN + (HEIGHT - 2 * MARGIN) * (high - number) / span, 1)

    step = (WIDTH - 2 * MARGIN) / (figure.n - 1)
    band = None
    if figure.low is not None and figure.high is not None:
        band = (y(figure.high), round(max(y(figure.low) - y(figure.high), 0.5), 1))
    told = ", ".join(value(each, figure.unit) for each in figure.values[:20])
    return Dots(
        places=[(round(MARGIN + index * step, 1), y(each)) for index, each in enumerate(figure.values)],
        band=band,
        mean_y=y(figure.mean),
        top=value(high, figure.unit),
        bottom=value(low, figure.unit),
        words=f"{figure.n} repeats: {told}{' and more' if figure.n > 20 else ''}",
    )


def ratio_rows(found: CommandsCompared) -> list[RatioRow]:
    known = {(group.label, each.name): each for group in found.groups for each in group.figures}
    return [_row(each, known[each.group, each.figure], known[each.against, each.figure]) for each in found.comparisons]


def _row(each: ComparedOut, one: FigureOut, other: FigureOut) -> RatioRow:
    interval = each.ratio or each.difference
    sign = "×" if each.ratio else ""
    return RatioRow(
        figure=each.figure,
        group=each.group,
        mean=value(one.mean, one.unit),
        against=each.against,
        other=value(other.mean, other.unit),
        ratio=f"{interval.estimate:.3g} {sign}".strip() if interval else DASH,
        interval=f"{interval.low:.3g} to {interval.high:.3g}" if interval else DASH,
        verdict=each.sentence.partition(":")[0],
        tag=TAGS.get(each.verdict, ""),
    )


def by_figure(rows: Sequence[RatioRow]) -> dict[str, list[RatioRow]]:
    found: dict[str, list[RatioRow]] = {}
    for row in rows:
        found.setdefault(row.figure, []).append(row)
    return found
