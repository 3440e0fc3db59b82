"""How much of the machine runs had over time, and what that cost, for the fleet page. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from orchestrator.dashboard.figures.bars import Part, stacked
from orchestrator.dashboard.figures.figure import Figure, dollars

STEP = timedelta(hours=6)
STEPS = 28
COLOURS = 5


def vcpu_over_time(
    spans: Sequence[tuple[str, datetime, datetime | None]],
    vcpu_of: Callable[[str], float],
    now: datetime,
    capacity: float | None,
) -> Figure | None:
    """Mean vCPU that containers had in steps of six hours, by instance type. From (instance type, start, end or None)."""
    hour = now.hour - now.hour % 6
    end = now.replace(hour=hour, minute=0, second=0, microsecond=0) + STEP
    begins = [end - STEP * back for back in range(STEPS, 0, -1)]
    busy: dict[str, list[float]] = defaultdict(lambda: [0.0] * STEPS)
    for name, start, ended in spans:
        stop = ended or now
        for index, begin in enumerate(begins):
            shared = (min(stop, begin + STEP) - max(start, begin)).total_seconds()
            if shared > 0:
                busy[name][index] += vcpu_of(name) * shared / STEP.total_seconds()
    ordered = sorted(busy, key=lambda name: -sum(busy[name]))
    parts = [
        Part(name, f"c{number + 1}" if number < COLOURS else "c0", [round(value, 4) for value in busy[name]])
        for number, name in enumerate(ordered)
    ]
    note = "mean per 6 hours" + (f", {capacity:g} vCPU in all" if capacity else "")
    labels = [f"{begin:%b %d %H:%M}" for begin in begins]
    return stacked("vcpu", "vCPU in use", labels, parts, show=_cores, step_name="From (UTC)", note=note)


def machine_cost_per_day(costs: Mapping[str, float]) -> Figure | None:
    """From US dollars by day."""
    days = sorted(costs)
    if not days:
        return None
    parts = [Part("Machine cost", "c1", [costs[day] for day in days])]
    note = f"{dollars(sum(costs.values()))} in {len(days)} days"
    return stacked("machine-cost", "Machine cost per day", [day[5:] for day in days], parts, show=dollars, note=note)


def _cores(value: float) -> str:
    return f"{value:.3g}"
