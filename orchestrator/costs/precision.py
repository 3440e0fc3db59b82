"""Predicts how precise a run's score will be: the width of its interval. Pure. `costs.quote` estimates the cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.runs.reports.queries import ScoredRun
from orchestrator.stats.intervals import wilson
from orchestrator.stats.summary import Metric

UNKNOWN_SHARE = 0.5
"""The score assumed for an unknown model: it has the widest interval."""


@dataclass(frozen=True)
class Quote:
    problems: int
    items: int
    assumed: float
    """The score that the interval is computed for."""
    from_past: bool
    low: float
    high: float
    detectable: float
    """About how far apart two such runs must be for the difference to be more than chance."""

    @property
    def margin(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2


def quote(problems: int, samples: int, past: Sequence[ScoredRun]) -> Quote | None:
    """From the size of the run and earlier runs of the same model and benchmarks; None for an empty run.

    Several samples of one problem say little more than one of them, so the interval counts problems, not items.
    """
    if problems < 1 or samples < 1:
        return None
    items = problems * samples
    counted = sum(run.score["n"] for run in past)
    assumed = sum(map(_value, past)) / counted if counted else UNKNOWN_SHARE
    interval = wilson(assumed * problems, problems)
    return Quote(
        problems=problems,
        items=items,
        assumed=assumed,
        from_past=bool(counted),
        low=interval.low,
        high=interval.high,
        detectable=2**0.5 * (interval.high - interval.low) / 2,
    )


def _value(run: ScoredRun) -> float:
    """The sum of the values of its items."""
    mean = run.score.get("metric") == Metric.MEAN
    return float(run.score["n"] * run.score["estimate"] if mean else run.score["passed"])
