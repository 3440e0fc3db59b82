"""What a schedule can detect: the smallest drop it finds in time, and the size it needs for a given drop. Pure.

A plan, not a guarantee: it uses the normal approximation of the tests in `evidence`, for independent results, and is checked
by simulation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

from orchestrator.schedules.drift.evidence import spread_of
from orchestrator.schedules.drift.series import WINDOWS, threshold

Moments = tuple[int, float, float]
"""Number of results of a problem, the sum of their values, and the sum of their squares."""
ASSUMED_SPREAD = 0.125
"""Mean p(1-p) of problems whose chances are spread evenly in the arcsine sense; used until there is history."""
POWER = 0.9
WITHIN = 10
POOL = 30


@dataclass(frozen=True)
class DetectionPower:
    """The terms of a statement about what can be detected."""

    problems: int
    samples: int = 1
    spread: float = ASSUMED_SPREAD
    assumed: bool = True
    """No history yet: the spread is an assumption."""
    pool: int = POOL
    """Runs in the baseline."""
    within: int = WITHIN
    """Runs after the drop."""
    look: int = POOL + WITHIN
    alarm_rate: float = 0.05
    power: float = POWER


def spread(histories: Iterable[Moments]) -> float | None:
    """Mean variance of a result, p(1-p) for pass or fail, over problems; None without a problem that has two results."""
    spreads = [spread_of(*history) for history in histories if history[0] >= 2]
    return math.fsum(spreads) / len(spreads) if spreads else None


def detectable_drop(power: DetectionPower) -> float:
    """The smallest drop, as a share of results, that is found with the required power."""
    return min(1.0, _reach(power) * math.sqrt(power.spread / (power.problems * power.samples)))


def problems_for(drop: float, power: DetectionPower) -> int:
    """How many problems are needed to find `drop`."""
    return math.ceil(power.spread / power.samples * (_reach(power) / drop) ** 2)


def _reach(power: DetectionPower) -> float:
    """The drop that is found, in standard deviations of one run's score."""
    window = max(window for window in WINDOWS if window <= max(1, power.within))
    level = 1 / (2 * len(WINDOWS) * threshold(power.look, power.alarm_rate))
    distance = NormalDist().inv_cdf(1 - level) + NormalDist().inv_cdf(power.power)
    return distance * math.sqrt(1 / max(1, power.pool) + 1 / window)


def sentence(power: DetectionPower) -> str:
    drop = detectable_drop(power)
    basis = "assuming a typical mix of problems" if power.assumed else "from the results of this model"
    return (
        f"{power.problems} problems against {power.pool} earlier runs: a drop of {100 * drop:.1f} points is detected within "
        f"{power.within} runs in {100 * power.power:.0f} % of cases ({basis}). "
        f"False alarms: in at most {100 * power.alarm_rate:g} % of series, however long."
    )
