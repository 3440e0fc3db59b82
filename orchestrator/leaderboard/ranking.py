"""Ranks models on the same problems: scores with intervals, and ranks as far as the evidence separates them. Pure.

Every pair of models is compared by an exact paired test on the problems with results of both, and the p-values are adjusted
for their number (Holm). A model's rank is a range: at best just behind the models that are significantly better, at worst
just before those that are significantly worse.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from orchestrator.schedules.drift.series import Results
from orchestrator.stats.clustered import clustered_interval
from orchestrator.stats.exchangeable import Blocks, tails
from orchestrator.stats.intervals import Interval
from orchestrator.stats.paired import exact_mcnemar, swap_test
from orchestrator.stats.summary import Metric

LEVEL = 0.05
MIN_SHARED = 10
"""With fewer shared problems, two models are not compared."""


@dataclass(frozen=True)
class Entrant:
    model: str
    run_id: str
    results: Results


@dataclass(frozen=True)
class RankedModel:
    model: str
    run_id: str
    score: Interval
    problems: int
    best: int
    """The best possible rank."""
    worst: int
    group: int
    """Models of one group cannot be distinguished from the first of the group."""
    tied_with: tuple[str, ...] = field(default=())
    results: int = 0
    """Number of counted answers."""
    metric: Metric = Metric.SHARE


def leaderboard(entrants: Sequence[Entrant], level: float = LEVEL) -> list[RankedModel]:
    """Models ranked by score, each with those it cannot be distinguished from."""
    scores = {entrant.model: score_of(entrant.results) for entrant in entrants}
    better = _separated(entrants, scores, level)
    ordered = sorted(entrants, key=lambda entrant: (-scores[entrant.model].estimate, entrant.model))
    metric = Metric.MEAN if any(metric_of(entrant.results) is Metric.MEAN for entrant in entrants) else Metric.SHARE
    ranking: list[RankedModel] = []
    group, leader = 0, None
    for entrant in ordered:
        model = entrant.model
        if leader is None or (leader, model) in better:
            group, leader = group + 1, model
        above = sum((other.model, model) in better for other in ordered)
        below = sum((model, other.model) in better for other in ordered)
        tied = tuple(
            other.model
            for other in ordered
            if other.model != model and (other.model, model) not in better and (model, other.model) not in better
        )
        results = sum(count for count, _ in entrant.results.values())
        span = above + 1, len(ordered) - below
        measured = scores[model], len(entrant.results)
        ranking.append(RankedModel(model, entrant.run_id, *measured, *span, group, tied, results, metric))
    return ranking


def score_of(results: Results) -> Interval:
    return clustered_interval([_values(*result) for result in results.values()])


def metric_of(results: Results) -> Metric:
    return Metric.SHARE if all(isinstance(total, int) for _, total in results.values()) else Metric.MEAN


def _values(count: int, total: float) -> list[float]:
    """The results of one problem. Of values between 0 and 1 only the sum is known, and only the sum matters."""
    if isinstance(total, int):
        return [1.0] * total + [0.0] * (count - total)
    return [total / count] * count


def holm(p_values: Mapping[tuple[str, str], float], level: float) -> set[tuple[str, str]]:
    """The pairs that stay below the level after Holm's correction."""
    rejected = set()
    for index, (pair, p_value) in enumerate(sorted(p_values.items(), key=lambda entry: (entry[1], entry[0]))):
        if p_value > level / (len(p_values) - index):
            break
        rejected.add(pair)
    return rejected


def _separated(entrants: Sequence[Entrant], scores: Mapping[str, Interval], level: float) -> set[tuple[str, str]]:
    """Pairs (better, worse) that the tests distinguish."""
    p_values: dict[tuple[str, str], float] = {}
    for entrant, other in combinations(entrants, 2):
        shared = entrant.results.keys() & other.results.keys()
        if len(shared) < MIN_SHARED:
            continue
        gain, p_value = _compared([entrant.results[key] for key in shared], [other.results[key] for key in shared])
        pair = (other.model, entrant.model) if gain > 0 else (entrant.model, other.model)
        p_values[pair] = p_value
    return {pair for pair in holm(p_values, level) if scores[pair[0]].estimate > scores[pair[1]].estimate}


def _compared(first: Sequence[tuple[int, float]], second: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """The gain of the second over the first, and the exact p-value. With one result each, this is McNemar's fast test."""
    pairs = list(zip(first, second, strict=True))
    if any(not isinstance(total, int) for pair in pairs for _, total in pair):
        differences = [other[1] / other[0] - first[1] / first[0] for first, other in pairs]
        return math.fsum(differences), swap_test(differences)
    if all(first[0] == other[0] == 1 for first, other in pairs):
        losses = sum(first[1] > other[1] for first, other in pairs)
        won = sum(first[1] < other[1] for first, other in pairs)
        return won - losses, exact_mcnemar(losses, won)
    fewer, more = tails(_swapped(*other, *first) for first, other in pairs)
    return fewer - more, min(1.0, 2 * min(fewer, more))


def _swapped(count: int, passed: float, other_count: int, other_passed: float) -> Blocks:
    """If the models were equal on this problem, their shares could be swapped; given as whole numbers over a common base."""
    common = math.gcd(count, other_count)
    return Blocks(passed * (other_count // common), (other_passed * (count // common),))
