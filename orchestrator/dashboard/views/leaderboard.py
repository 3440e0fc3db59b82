"""Models in order of their score on one benchmark, in groups that cannot be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.dashboard.views.series import Series
from orchestrator.stats.intervals import LEVEL, wilson_difference


@dataclass(frozen=True)
class Place:
    """`rank` is shared within a tie group: all of it may be as good as its best."""

    rank: int
    series: Series
    tied_with_best: bool


def leaderboard(candidates: Sequence[Series], benchmarks: str) -> list[Place]:
    """Those with a comparable score, best first. A new group begins where a model is clearly below the group's best.

    The intervals are of independent samples here; runs on the same problems say more: compare them with each other.
    """
    able = [each for each in candidates if each.benchmarks == benchmarks and each.score.comparable]
    able.sort(key=lambda each: (-each.score.estimate, each.model))
    places: list[Place] = []
    best: Series | None = None
    rank = 0
    for index, each in enumerate(able):
        if best is None or _clearly_better(best, each):
            best, rank = each, index + 1
        places.append(Place(rank, each, rank == 1))
    return places


def _clearly_better(one: Series, other: Series) -> bool:
    gap = wilson_difference((one.score.passed, one.score.n), (other.score.passed, other.score.n), LEVEL)
    return gap.low > 0
