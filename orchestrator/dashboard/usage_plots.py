"""What an attempt used over time, as numbers for two small SVG drawings: processor and memory against their limits. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from orchestrator.dashboard.texts import duration, size
from orchestrator.runs.reports.usage import Stored, UsagePoint, points

WIDTH, HEIGHT = 300.0, 60.0
NEAR = 0.25
"""The limit is drawn to scale once this share of it was used; below that the drawing would be a flat line."""


@dataclass(frozen=True)
class Plot:
    title: str
    words: str
    """What it shows, for who does not see it, and for who wants figures."""
    line: str
    area: str
    limit_y: float | None
    top: str
    """What the upper edge stands for."""
    ends: str


def usage_plots(samples: Sequence[Stored], vcpu_limit: float | None, memory_limit: float | None) -> list[Plot]:
    """None for fewer than two samples."""
    found = points(samples)
    if not found:
        return []
    begin = float(samples[0][0] or 0)
    span = found[-1].at_s - begin
    return [_cpu(found, begin, span, vcpu_limit), _memory(found, begin, span, memory_limit)]


def _cpu(found: Sequence[UsagePoint], begin: float, span: float, limit: float | None) -> Plot:
    most = max(point.vcpu for point in found)
    mean = _sum([point.vcpu for point in found], found, begin) / span
    said = [f"{_cores(mean)} on average, {_cores(most)} at most"]
    if limit:
        said.append(f"limit {_cores(limit)}")
    shares = [point.throttled for point in found if point.throttled is not None]
    if len(shares) == len(found):
        held = _sum(shares, found, begin)
        said.append(f"held back for {duration(held)}" if held >= 0.05 else "never held back")
    steps: list[tuple[float, float]] = []
    before = begin
    for point in found:  # a rate holds for the whole time between two samples
        steps += [(before, point.vcpu), (point.at_s, point.vcpu)]
        before = point.at_s
    return _plot("Processor", "; ".join(said), steps, begin, span, most, limit, _cores)


def _memory(found: Sequence[UsagePoint], begin: float, span: float, limit: float | None) -> Plot:
    most = max(point.memory_bytes for point in found)
    said = f"{size(most)} at most" + (f"; limit {size(limit)}" if limit else "")
    line = [(begin, found[0].memory_bytes), *((point.at_s, point.memory_bytes) for point in found)]
    return _plot("Memory", said, line, begin, span, most, limit, size)


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
    places = [(WIDTH * (at - begin) / span, HEIGHT * (1 - min(value / top, 1.0))) for at, value in line]
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return Plot(
        title=title,
        words=words,
        line=text,
        area=f"0,{HEIGHT:g} {text} {WIDTH:g},{HEIGHT:g}",
        limit_y=round(HEIGHT * (1 - limit / top), 1) if to_scale and limit else None,
        top=unit(limit if to_scale and limit else most),
        ends=duration(span),
    )


def _sum(rates: Sequence[float], found: Sequence[UsagePoint], begin: float) -> float:
    """Rates times their durations."""
    times = [begin, *(point.at_s for point in found)]
    return sum(rate * (after - before) for rate, (before, after) in zip(rates, pairwise(times), strict=True))


def _cores(vcpu: float) -> str:
    return f"{vcpu:.2g} vCPU" if vcpu < 10 else f"{vcpu:.0f} vCPU"
