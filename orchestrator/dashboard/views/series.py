"""Scores of a model over time, one series per model and set of benchmarks: only those may be compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from orchestrator.dashboard.charts import Trend, trend
from orchestrator.dashboard.views.runs import ScoreView, score_view
from orchestrator.db.page_queries import ScoredRun


@dataclass(frozen=True)
class Series:
    """The newest score of a series and how it came there."""

    model_id: int
    model: str
    benchmarks: str
    score: ScoreView
    trend: Trend | None
    run_id: str
    at: datetime | None

    @property
    def key(self) -> str:
        return f"{self.model_id}/{self.benchmarks}"


def series(runs: Sequence[ScoredRun], models: Mapping[int, str]) -> list[Series]:
    """From runs, newest first; models that are not in `models` (archived ones) are left out."""
    groups: dict[tuple[int, tuple[str, ...]], list[ScoredRun]] = defaultdict(list)
    for run in runs:
        if run.model_id in models:
            groups[run.model_id, run.benchmarks].append(run)
    found = [_one(members, models) for members in groups.values()]
    return sorted((each for each in found if each is not None), key=lambda each: (each.benchmarks, -each.score.estimate))


def _one(members: Sequence[ScoredRun], models: Mapping[int, str]) -> Series | None:
    newest = members[0]
    score = score_view(newest.score, len(newest.benchmarks))
    if score is None:
        return None
    past = [(run.score["estimate"], run.score["low"], run.score["high"]) for run in reversed(members)]
    return Series(
        model_id=newest.model_id,
        model=models[newest.model_id],
        benchmarks=", ".join(newest.benchmarks),
        score=score,
        trend=trend(past),
        run_id=newest.id,
        at=newest.completed_at,
    )
