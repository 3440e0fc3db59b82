"""A schedule's runs as a chart: score with interval, what the baseline expects, alarms, panel versions. Pure.

The numbers are for the browser, which draws them interactively; the drawing is for pages without script.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from orchestrator.schedules.drift.series import BaselineKind

WIDTH, HEIGHT = 720.0, 200.0
LEFT, RIGHT, TOP, BOTTOM = 40.0, 8.0, 12.0, 22.0
Z = 1.96


@dataclass(frozen=True)
class FireScore:
    """One comparable or judged run of a schedule, as stored."""

    at: datetime
    run_id: str
    panel: int
    verdict: str | None
    is_look: bool
    score: float
    low: float
    high: float
    n: int
    passed: int = 0


@dataclass(frozen=True)
class ChartPoint:
    at: float
    """Seconds since 1970."""
    run: str
    score: float
    low: float
    high: float
    n: int
    panel: int
    verdict: str
    alert: int | None
    base: float | None
    """The score of the baseline."""
    base_low: float | None
    base_high: float | None


@dataclass(frozen=True)
class Mark:
    x: float
    y: float
    low_y: float
    high_y: float
    css: str
    href: str
    words: str


@dataclass(frozen=True)
class Drawing:
    line: str
    bands: tuple[str, ...]
    marks: tuple[Mark, ...]
    panels: tuple[tuple[float, int], ...]
    """Where a new panel begins, and its version."""
    ticks: tuple[tuple[float, str], ...]
    words: str
    first: datetime
    last: datetime


def chart_points(
    fires: Sequence[FireScore], alerts: Mapping[str, int], kind: BaselineKind, baseline_runs: int, chosen: str | None = None
) -> list[ChartPoint]:
    """`fires` and the result are oldest first; `alerts` has the alert of a run; `chosen` is the run of a fixed baseline."""
    points = []
    for number, fire in enumerate(fires):
        earlier = [other for other in fires[:number] if other.panel == fire.panel and other.is_look]
        base = _baseline(earlier, fires, kind, baseline_runs, chosen)
        half = Z * math.sqrt(base * (1 - base) / fire.n) if base is not None and fire.n else None
        points.append(
            ChartPoint(
                at=fire.at.timestamp(),
                run=fire.run_id,
                score=fire.score,
                low=fire.low,
                high=fire.high,
                n=fire.n,
                panel=fire.panel,
                verdict=fire.verdict or "",
                alert=alerts.get(fire.run_id),
                base=base,
                base_low=max(0.0, base - half) if base is not None and half is not None else None,
                base_high=min(1.0, base + half) if base is not None and half is not None else None,
            )
        )
    return points


def _baseline(
    earlier: Sequence[FireScore], scored: Sequence[FireScore], kind: BaselineKind, runs: int, chosen: str | None
) -> float | None:
    if kind is BaselineKind.RUN:
        pool = [fire for fire in scored if fire.run_id == chosen]
    elif kind is BaselineKind.LAST_GOOD:
        pool = [fire for fire in earlier if fire.verdict != "worse"][-1:]
    else:
        pool = list(earlier[-runs:])
    return sum(fire.score for fire in pool) / len(pool) if pool else None


def lasting_alerts(fires: Sequence[FireScore], alerts: Mapping[str, int]) -> dict[str, int]:
    """The alert of each run. While a verdict lasts, only its first run raises one, which the later ones share."""
    shared = dict(alerts)
    before: FireScore | None = None
    for fire in fires:
        lasts = before is not None and fire.verdict in ("worse", "better") and fire.verdict == before.verdict
        if lasts and before is not None and fire.panel == before.panel and fire.run_id not in shared:
            shared |= {fire.run_id: shared[before.run_id]} if before.run_id in shared else {}
        before = fire
    return shared


def for_browser(points: Sequence[ChartPoint]) -> list[dict[str, Any]]:
    return [asdict(point) for point in points]


def drawing(points: Sequence[ChartPoint], fires: Sequence[FireScore]) -> Drawing | None:
    """None for fewer than two runs with a score."""
    if len(points) < 2:
        return None
    begin, end = points[0].at, points[-1].at
    bottom = min(min(point.low, point.base_low if point.base_low is not None else 1.0) for point in points)
    top = max(max(point.high, point.base_high or 0.0) for point in points)
    bottom, top = math.floor(bottom * 10) / 10, max(math.ceil(top * 10) / 10, math.floor(bottom * 10) / 10 + 0.1)

    def x(at: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (at - begin) / ((end - begin) or 1), 1)

    def y(value: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (top - value) / (top - bottom), 1)

    marks = tuple(
        Mark(x(point.at), y(point.score), y(point.low), y(point.high), _css(point), _href(point), _words(point))
        for point in points
    )
    panels = tuple((x(point.at), point.panel) for before, point in pairwise(points) if point.panel != before.panel)
    steps = max(1, round((top - bottom) * 10 / 4))
    values = [bottom + step / 10 for step in range(0, round((top - bottom) * 10) + 1, steps)]
    return Drawing(
        line=" ".join(f"{mark.x:g},{mark.y:g}" for mark in marks),
        bands=_bands(points, x, y),
        marks=marks,
        panels=panels,
        ticks=tuple((y(value), f"{100 * value:.0f} %") for value in values),
        words=_sentence(points),
        first=fires[0].at,
        last=fires[-1].at,
    )


def _bands(points: Sequence[ChartPoint], x: Callable[[float], float], y: Callable[[float], float]) -> tuple[str, ...]:
    """One polygon for each stretch of runs with a baseline, on one panel."""
    stretches: list[list[ChartPoint]] = [[]]
    for point in points:
        if point.base_low is None or (stretches[-1] and stretches[-1][-1].panel != point.panel):
            stretches.append([])
        if point.base_low is not None:
            stretches[-1].append(point)
    polygons = []
    for stretch in stretches:
        if len(stretch) > 1:
            upper = [(x(point.at), y(point.base_high or 0.0)) for point in stretch]
            lower = [(x(point.at), y(point.base_low or 0.0)) for point in reversed(stretch)]
            polygons.append(" ".join(f"{left:g},{high:g}" for left, high in [*upper, *lower]))
    return tuple(polygons)


def _css(point: ChartPoint) -> str:
    return {"worse": "worse", "better": "better", "not_comparable": "odd"}.get(point.verdict, "plain")


def _href(point: ChartPoint) -> str:
    return f"/alerts/{point.alert}" if point.alert is not None else f"/runs/{point.run}"


def _words(point: ChartPoint) -> str:
    verdict = f", {point.verdict.replace('_', ' ')}" if point.verdict else ""
    return f"{100 * point.score:.1f} % ({100 * point.low:.1f} to {100 * point.high:.1f}){verdict}"


def _sentence(points: Sequence[ChartPoint]) -> str:
    alarms = sum(point.verdict in ("worse", "better") for point in points)
    newest = points[-1]
    return f"{len(points)} runs, newest {100 * newest.score:.1f} %, {alarms} alarm{'' if alarms == 1 else 's'}"
