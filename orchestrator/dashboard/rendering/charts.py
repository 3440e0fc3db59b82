"""Small charts as numbers for SVG attributes: outcome bars, and score trends with their intervals. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from orchestrator.dashboard.texts import duration, size
from orchestrator.runs.reports.machine_cost import Stored, UsagePoint, points
from runner.contract.events import NOT_THE_MODELS_FAULT, Outcome

TREND_WIDTH, TREND_HEIGHT, MARGIN = 120.0, 28.0, 3.0
PLOT_WIDTH, PLOT_HEIGHT = 300.0, 60.0
NEAR = 0.25
"""The limit is drawn to scale once this share of it was used; below that, the plot would be a flat line."""


@dataclass(frozen=True)
class Segment:
    """One outcome in a bar of width 100."""

    name: str
    count: int
    share: float
    start: float
    width: float
    left_out: bool


def outcome_bar(counts: Mapping[str, int]) -> list[Segment]:
    """Segments in the order of the closed list of outcomes, so that colours keep their position from run to run."""
    total = sum(counts.values())
    segments, start = [], 0.0
    for outcome in Outcome:
        count = counts.get(outcome.value, 0)
        if count:
            width = 100 * count / total
            segments.append(
                Segment(
                    outcome.value, count, count / total, round(start, 3), round(width, 3), outcome in NOT_THE_MODELS_FAULT
                )
            )
            start += width
    return segments


@dataclass(frozen=True)
class Trend:
    """A line of estimates with a band of their intervals, oldest first."""

    line: str
    band: str
    x: float
    y: float
    count: int
    words: str
    """The same as text, for screen readers."""


def trend(scores: Sequence[tuple[float, float, float]]) -> Trend | None:
    """From (estimate, low, high), oldest first; None for fewer than two."""
    if len(scores) < 2:
        return None
    bottom = min(low for _, low, _ in scores)
    top = max(high for _, _, high in scores)
    span = (top - bottom) or 1.0
    step = (TREND_WIDTH - 2 * MARGIN) / (len(scores) - 1)

    def point(index: int, value: float) -> tuple[float, float]:
        return round(MARGIN + index * step, 1), round(MARGIN + (TREND_HEIGHT - 2 * MARGIN) * (top - value) / span, 1)

    middle = [point(index, estimate) for index, (estimate, _, _) in enumerate(scores)]
    upper = [point(index, high) for index, (_, _, high) in enumerate(scores)]
    lower = [point(index, low) for index, (_, low, _) in enumerate(scores)]
    first, last = scores[0][0], scores[-1][0]
    sentence = f"{len(scores)} runs, from {100 * first:.1f} % to {100 * last:.1f} %"
    return Trend(_points(middle), _points([*upper, *reversed(lower)]), *middle[-1], len(scores), sentence)


def _points(coordinates: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in coordinates)


@dataclass(frozen=True)
class Plot:
    title: str
    words: str
    """The content as text, for screen readers and for people who want figures."""
    line: str
    area: str
    limit_y: float | None
    top: str
    """What the upper edge or the dashed line means, in words."""
    ends: str


def usage_plots(samples: Sequence[Stored], vcpu_limit: float | None, memory_limit: float | None) -> list[Plot]:
    """Empty for fewer than two samples."""
    usage = points(samples)
    if not usage:
        return []
    begin = float(samples[0][0] or 0)
    span = usage[-1].at_s - begin
    return [_cpu(usage, begin, span, vcpu_limit), _memory(usage, begin, span, memory_limit)]


def _cpu(usage: Sequence[UsagePoint], begin: float, span: float, limit: float | None) -> Plot:
    most = max(point.vcpu for point in usage)
    mean = _sum([point.vcpu for point in usage], usage, begin) / span
    facts = [f"{_cores(mean)} on average, {_cores(most)} at most"]
    if limit:
        facts.append(f"limit {_cores(limit)}")
    shares = [point.throttled for point in usage if point.throttled is not None]
    if len(shares) == len(usage):
        throttled = _sum(shares, usage, begin)
        facts.append(f"throttled for {duration(throttled)}" if throttled >= 0.05 else "not throttled")
    steps: list[tuple[float, float]] = []
    before = begin
    for point in usage:  # a rate applies to the whole time between two samples
        steps += [(before, point.vcpu), (point.at_s, point.vcpu)]
        before = point.at_s
    return _plot("CPU", "; ".join(facts), steps, begin, span, most, limit, _cores)


def _memory(usage: Sequence[UsagePoint], begin: float, span: float, limit: float | None) -> Plot:
    most = max(point.memory_bytes for point in usage)
    words = f"{size(most)} at most" + (f"; limit {size(limit)}" if limit else "")
    line = [(begin, usage[0].memory_bytes), *((point.at_s, point.memory_bytes) for point in usage)]
    return _plot("Memory", words, line, begin, span, most, limit, size)


def _plot(
    title: str,
    words: str,
    line: Sequence[tuple[float, float]],
    begin: float,
    span: float,
    most: float,
    limit: float | None,
    unit: Callable[[float], str],
) -> Plot:
    to_scale = limit is not None and most >= NEAR * limit
    top = max(most, limit if to_scale and limit else 0.0) * 1.05 or 1.0
    coordinates = [(PLOT_WIDTH * (at - begin) / span, PLOT_HEIGHT * (1 - min(value / top, 1.0))) for at, value in line]
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in coordinates)
    return Plot(
        title=title,
        words=words,
        line=text,
        area=f"0,{PLOT_HEIGHT:g} {text} {PLOT_WIDTH:g},{PLOT_HEIGHT:g}",
        limit_y=round(PLOT_HEIGHT * (1 - limit / top), 1) if to_scale and limit else None,
        top=_top(most, limit, to_scale, unit),
        ends=duration(span),
    )


def _top(most: float, limit: float | None, to_scale: bool, unit: Callable[[float], str]) -> str:
    if not limit:
        return f"max {unit(most)}"
    return f"limit {unit(limit)}" if to_scale else f"max {unit(most)}, limit {unit(limit)}"


def _sum(rates: Sequence[float], usage: Sequence[UsagePoint], begin: float) -> float:
    """The sum of rates times their durations."""
    times = [begin, *(point.at_s for point in usage)]
    return sum(rate * (after - before) for rate, (before, after) in zip(rates, pairwise(times), strict=True))


def _cores(vcpu: float) -> str:
    return f"{vcpu:.2g} vCPU" if vcpu < 10 else f"{vcpu:.0f} vCPU"
