"""What happened lately, for the overview: runs and failures per day, spend per day, scores that changed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from orchestrator.dashboard.figures.bars import Part, stacked
from orchestrator.dashboard.figures.figure import Figure, dollars
from orchestrator.runs.views.series import Series

DAYS = 14
NOTABLE = 0.02
"""Smaller changes of a score are not worth a line."""
COLOURS = 5
STATUSES = (("completed", "o-passed"), ("failed", "o-wrong_answer"), ("cancelled", "c0"), ("active", "c1"))


@dataclass(frozen=True)
class ScoreChange:
    """The newest score of a series against the one that was the newest a week ago."""

    model: str
    model_id: int
    benchmark: str
    before: float
    now: float
    run_id: str
    previous_id: str
    beyond: bool
    """Whether the intervals of the two do not overlap."""


def days_until(today: date, count: int = DAYS) -> list[str]:
    return [(today - timedelta(days=back)).isoformat() for back in range(count - 1, -1, -1)]


def runs_per_day(rows: Sequence[tuple[str, str, int]], today: date) -> Figure | None:
    """From (day, status, number)."""
    days = days_until(today)
    counts: dict[tuple[str, str], int] = {}
    known = {name for name, _ in STATUSES}
    for day, status, count in rows:
        key = day, status if status in known else "active"
        counts[key] = counts.get(key, 0) + count
    parts = [Part(name, css, [counts.get((day, name), 0) for day in days]) for name, css in STATUSES]
    return stacked("runs-per-day", "Runs per day", [day[5:] for day in days], parts)


def spend_per_day(by_day: Mapping[tuple[str, str], float], today: date) -> Figure | None:
    """From US dollars by (day, model). The models that cost most have colours of their own."""
    days = days_until(today)
    totals: dict[str, float] = {}
    for (day, model), amount in by_day.items():
        if day in days:
            totals[model] = totals.get(model, 0.0) + amount
    ordered = sorted(totals, key=lambda model: (-totals[model], model))
    named, rest = ordered[:COLOURS], ordered[COLOURS:]
    parts = [
        Part(model, f"c{number + 1}", [by_day.get((day, model), 0.0) for day in days]) for number, model in enumerate(named)
    ]
    if rest:
        parts.append(Part("others", "c0", [sum(by_day.get((day, model), 0.0) for model in rest) for day in days]))
    note = f"{dollars(sum(totals.values()))} in {DAYS} days"
    return stacked("spend-per-day", "Spend per day", [day[5:] for day in days], parts, show=dollars, note=note)


def score_changes(series: Sequence[Series], since: datetime) -> list[ScoreChange]:
    """Scores measured since then against the last ones before, or the first ones; the largest change first."""
    found = []
    for line in series:
        earlier = [point for point in line.points[1:] if point.run.completed_at is not None]
        if line.at is None or line.at < since or not earlier:
            continue
        old = next((point for point in earlier if point.run.completed_at and point.run.completed_at < since), earlier[-1])
        before, now = old.score, line.score
        if abs(now.estimate - before.estimate) >= NOTABLE:
            beyond = now.high < before.low or now.low > before.high
            found.append(
                ScoreChange(
                    line.model,
                    line.model_id,
                    line.benchmarks,
                    before.estimate,
                    now.estimate,
                    line.run_id,
                    old.run.id,
                    beyond,
                )
            )
    return sorted(found, key=lambda change: -abs(change.now - change.before))
