"""The score of a run, or of any set of items: estimates with intervals, in total and per group.

Provider and infrastructure errors are not the model's fault: the score excludes them, reports their number, and is also
given with the full denominator. With more than 2 % of them, the score is not comparable with others.

An item counts 1 if it passed and 0 otherwise, unless it has a value of its own between 0 and 1. The score is the mean.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from orchestrator.stats.clustered import clustered_interval
from orchestrator.stats.intervals import LEVEL, Interval, independent_difference, wilson_difference
from orchestrator.stats.pass_at_k import mean_pass_at_k, possible_k
from runner.contract.events import NOT_THE_MODELS_FAULT, Outcome

COMPARABLE_UP_TO = 0.02
NOTHING_TO_JUDGE = frozenset({Outcome.NO_ANSWER, Outcome.TRUNCATED, Outcome.REFUSED})
"""The official checkers do not distinguish these: there they are ordinary failures."""


class Metric(StrEnum):
    """What a score is."""

    SHARE = "pass_rate"  #: the share of passed items
    MEAN = "mean"  #: the mean of values, some of them between 0 and 1


def value_of(outcome: str, score: float | None) -> float:
    """What an item counts; a whole number if it is entirely right or wrong."""
    if score is None:
        return int(outcome == Outcome.PASSED)
    return int(score) if score in (0, 1) else score


class ItemScore(NamedTuple):
    """The fields of an item that scores need. Fields that a benchmark does not have are empty."""

    problem_id: str
    sample_index: int
    outcome: Outcome
    difficulty: str = ""
    platform: str = ""
    category: str = ""
    date: str = ""
    """ISO date of the problem."""
    parity_outcome: Outcome | None = None
    score: float | None = None
    """The value of an item that is not pass or fail."""


@dataclass(frozen=True)
class Score:
    """The mean value of items with its interval; without values between 0 and 1, the share of passed items."""

    estimate: float
    low: float
    high: float
    n: int
    """Items that count."""
    passed: int
    problems: int
    metric: Metric = field(default=Metric.SHARE, kw_only=True)


@dataclass(frozen=True)
class Summary(Score):
    """The score of a set of items. `estimate`, `low`, `high` and `n` exclude errors that are not the model's fault."""

    n_all: int
    estimate_all: float
    """The estimate with excluded items counted as failures."""
    comparable: bool
    outcomes: dict[str, int]
    pass_at_k: dict[int, float]
    by_difficulty: dict[str, Score] = field(default_factory=dict)
    by_platform: dict[str, Score] = field(default_factory=dict)
    by_category: dict[str, Score] = field(default_factory=dict)
    by_month: dict[str, Score] = field(default_factory=dict)
    parity: Score | None = None
    """The score by the rules of the official checker, if the benchmark has one."""
    flips: int = 0
    """Items on which the two verdicts differ."""


@dataclass(frozen=True)
class CutOff:
    """Scores on problems from before and after a model's training cut-off."""

    before: Score
    after: Score
    difference: Interval
    """Before minus after, by problem; a value clearly above 0 suggests memorised problems."""


def summarise(items: Sequence[ItemScore], level: float = LEVEL) -> Summary:
    """Also accepts an empty set."""
    counted = [item for item in items if item.outcome not in NOT_THE_MODELS_FAULT]
    total = _score(counted, level)
    values = math.fsum(map(_value, counted))
    left_out = len(items) - len(counted)
    both = any(item.parity_outcome for item in counted)
    twice = [item for item in counted if both and (item.parity_outcome or item.outcome in NOTHING_TO_JUDGE)]
    tallies = list(_tallies(counted).values())
    return Summary(
        **vars(total),
        n_all=len(items),
        estimate_all=values / len(items) if items else 0.0,
        comparable=left_out <= COMPARABLE_UP_TO * len(items),
        outcomes=dict(sorted(Counter(str(item.outcome) for item in items).items())),
        pass_at_k={k: mean_pass_at_k(tallies, k) for k in possible_k(tallies)},
        by_difficulty=_by(counted, lambda item: item.difficulty, level, total.metric),
        by_platform=_by(counted, lambda item: item.platform, level, total.metric),
        by_category=_by(counted, lambda item: item.category, level, total.metric),
        by_month=_by(counted, lambda item: item.date[:7], level, total.metric),
        parity=_score(twice, level, _parity_passed, _parity_passed) if twice else None,
        flips=sum(_passed(item) != _parity_passed(item) for item in twice),
    )


def around_cut_off(items: Sequence[ItemScore], cut_off: str, level: float = LEVEL) -> CutOff | None:
    """Scores on problems up to the cut-off (an ISO date) and after it; None unless there are both."""
    dated = [item for item in items if item.date and item.outcome not in NOT_THE_MODELS_FAULT]
    before = [item for item in dated if item.date <= cut_off]
    after = [item for item in dated if item.date > cut_off]
    if not before or not after:
        return None
    first, second = _score(before, level), _score(after, level)
    if Metric.MEAN in (first.metric, second.metric):
        first, second = (replace(part, metric=Metric.MEAN) for part in (first, second))
        sides = [Interval(part.estimate, part.low, part.high) for part in (first, second)]
        return CutOff(first, second, independent_difference(*sides))
    return CutOff(first, second, wilson_difference(_by_problem(first), _by_problem(second), level))


def _by_problem(score: Score) -> tuple[float, float]:
    return score.estimate * score.problems, score.problems


def _passed(item: ItemScore) -> bool:
    return item.outcome is Outcome.PASSED


def _parity_passed(item: ItemScore) -> bool:
    return item.parity_outcome is Outcome.PASSED


def _tallies(items: Sequence[ItemScore]) -> dict[str, tuple[int, int]]:
    """Samples and passes per problem."""
    samples = Counter(item.problem_id for item in items)
    passes = Counter(item.problem_id for item in items if _passed(item))
    return {problem: (count, passes[problem]) for problem, count in samples.items()}


def _value(item: ItemScore) -> float:
    return value_of(item.outcome, item.score)


def _score(
    items: Sequence[ItemScore],
    level: float,
    value: Callable[[ItemScore], float] = _value,
    passed: Callable[[ItemScore], bool] = _passed,
) -> Score:
    clusters: dict[str, list[float]] = defaultdict(list)
    for item in items:
        clusters[item.problem_id].append(float(value(item)))
    interval = clustered_interval(list(clusters.values()), level)
    fractional = any(not isinstance(value(item), int) for item in items)
    wins = sum(map(passed, items))
    metric = Metric.MEAN if fractional else Metric.SHARE
    return Score(interval.estimate, interval.low, interval.high, len(items), wins, len(clusters), metric=metric)


def _by(items: Sequence[ItemScore], key: Callable[[ItemScore], str], level: float, metric: Metric) -> dict[str, Score]:
    """The score of each group. The whole set decides what it is called."""
    groups: dict[str, list[ItemScore]] = defaultdict(list)
    for item in items:
        if name := key(item):
            groups[name].append(item)
    return {name: replace(_score(groups[name], level), metric=metric) for name in sorted(groups)}
