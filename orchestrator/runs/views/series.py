"""Scores of a model over time: one series per model and benchmark, each on one sample, since only those may be compared.

A run of several benchmarks is a point in the series of each. A series uses the sample of its newest comparable run. It
leaves out runs on other problems, another pack or another version of the prompt, and scores that are not comparable, unless
there is nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from orchestrator.dashboard.charts import Trend, trend
from orchestrator.runs.reports.queries import ScoredRun
from orchestrator.runs.reports.scores import scores_by_benchmark, stored_sample
from orchestrator.runs.views.runs import ScoreView, score_view


@dataclass(frozen=True)
class Series:
    """The newest score of a series and its trend."""

    model_id: int
    model: str
    benchmarks: str
    score: ScoreView
    trend: Trend | None
    run_id: str
    at: datetime | None
    runs: int = 1
    """Number of points of the trend: runs on the same sample."""
    other_samples: int = 0
    """Number of other samples of this model and benchmark, which are not in the series."""

    @property
    def key(self) -> str:
        return f"{self.model_id}/{self.benchmarks}"


@dataclass(frozen=True)
class Point:
    """The score of one run on one benchmark, and its sample."""

    run: ScoredRun
    score: ScoreView
    sample: str


def series(runs: Sequence[ScoredRun], models: Mapping[int, str]) -> list[Series]:
    """Series from runs, which come newest first; models that are not in `models` (archived ones) are left out."""
    groups: dict[tuple[int, str], list[Point]] = defaultdict(list)
    for run in runs:
        if run.model_id in models:
            for name, point in _points(run).items():
                groups[run.model_id, name].append(point)
    lines = [_one(name, members, models) for (_, name), members in groups.items()]
    return sorted(lines, key=lambda line: (line.benchmarks, -line.score.estimate))


def _points(run: ScoredRun) -> dict[str, Point]:
    """Points by benchmark. A score that an older version stored only pooled gives one point, named as such."""
    parts = scores_by_benchmark(run.score, run.benchmarks)
    if not parts:
        view = score_view(run.score, len(run.benchmarks))
        return {} if view is None else {", ".join(run.benchmarks): Point(run, view, f"pooled {view.n_all}")}
    points = {}
    for name, part in parts.items():
        sample, view = stored_sample(run.score, name), score_view(part)
        if view is not None:
            points[name] = Point(run, view, sample["id"] if sample else f"unknown, {part.get('problems') or view.n_all}")
    return points


def _one(name: str, members: Sequence[Point], models: Mapping[int, str]) -> Series:
    comparable = [point for point in members if point.score.comparable]
    newest = (comparable or members)[0]
    same = [point for point in comparable or members if point.sample == newest.sample]
    past = [(point.score.estimate, point.score.low, point.score.high) for point in reversed(same)]
    return Series(
        model_id=newest.run.model_id,
        model=models[newest.run.model_id],
        benchmarks=name,
        score=newest.score,
        trend=trend(past),
        run_id=newest.run.id,
        at=newest.run.completed_at,
        runs=len(same),
        other_samples=len({point.sample for point in members}) - 1,
    )
