"""Scores of a model over time: one series per model and benchmark, each on one sample, since only those may be compared.

A run of several benchmarks is a point in the series of each. The models of a benchmark are shown on the largest set of
problems that they have in common; a model that has no run on it is shown on its own largest one, and says so. A series
leaves out runs on other problems, another pack or another version of the prompt, and scores that are not comparable, unless
there is nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from orchestrator.dashboard.rendering.charts import Trend, trend
from orchestrator.runs.reports.common_sample import by_common_size
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
    problems: int = 0
    points: tuple[Point, ...] = ()
    """Of the same sample, newest first."""
    common: bool = True
    """Whether the sample is the one that the models of this benchmark are compared on."""

    @property
    def key(self) -> str:
        return f"{self.model_id}/{self.benchmarks}"


@dataclass(frozen=True)
class Point:
    """The score of one run on one benchmark, and its sample."""

    run: ScoredRun
    score: ScoreView
    sample: str
    problems: int


def series(runs: Sequence[ScoredRun], models: Mapping[int, str]) -> list[Series]:
    """Series from runs, which come newest first; models that are not in `models` (archived ones) are left out."""
    groups: dict[tuple[int, str], list[Point]] = defaultdict(list)
    for run in runs:
        if run.model_id in models:
            for name, point in points_of(run).items():
                groups[run.model_id, name].append(point)
    common = _common_samples(groups)
    lines = [_one(name, members, models, common[name]) for (_, name), members in groups.items()]
    return sorted(lines, key=lambda line: (line.benchmarks, -line.score.estimate))


def points_of(run: ScoredRun) -> dict[str, Point]:
    """Points by benchmark. A score that an older version stored only pooled gives one point, named as such."""
    parts = scores_by_benchmark(run.score, run.benchmarks)
    if not parts:
        view = score_view(run.score, len(run.benchmarks))
        return {} if view is None else {", ".join(run.benchmarks): Point(run, view, f"pooled {view.n_all}", view.n_all)}
    points = {}
    for name, part in parts.items():
        sample, view = stored_sample(run.score, name), score_view(part)
        if view is not None:
            problems = sample["problems"] if sample else part.get("problems") or view.n_all
            points[name] = Point(run, view, sample["id"] if sample else f"unknown, {problems}", problems)
    return points


def _common_samples(groups: Mapping[tuple[int, str], Sequence[Point]]) -> dict[str, str]:
    """The sample that the models of each benchmark are compared on."""
    models: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    sizes: dict[str, int] = {}
    for (model_id, name), members in groups.items():
        for point in _usable(members):
            models[name][point.sample].add(model_id)
            sizes[point.sample] = point.problems
    return {name: _first_of(samples, sizes) for name, samples in models.items()}


def _first_of(samples: Mapping[str, set[int]], sizes: Mapping[str, int]) -> str:
    return by_common_size(list(samples), lambda sample: sizes[sample], lambda sample: len(samples[sample]))[0]


def _usable(members: Sequence[Point]) -> Sequence[Point]:
    return [point for point in members if point.score.comparable] or members


def _one(name: str, members: Sequence[Point], models: Mapping[int, str], common: str) -> Series:
    usable = _usable(members)
    of_common = [point for point in usable if point.sample == common]
    newest = of_common[0] if of_common else max(usable, key=lambda point: point.problems)
    same = [point for point in usable if point.sample == newest.sample]
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
        problems=newest.problems,
        points=tuple(same),
        common=newest.sample == common,
    )
