"""Compares runs with the first on the same problems, item by item: what was fixed or broken, and whether by chance. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.runs.reports.queries import ItemVerdict
from orchestrator.stats.intervals import Interval
from orchestrator.stats.paired import (
    Pairs,
    exact_mcnemar,
    holm_adjusted,
    mean_difference,
    paired_difference,
    swap_test,
)
from orchestrator.stats.summary import Metric, value_of
from runner.contract.events import NOT_THE_MODELS_FAULT, Outcome

SIGNIFICANT = 0.05
KINDS = ("fixed", "broken", "both", "neither")
"""Passed by another run but not the first; by the first but not all others; by all; by none.

Of items with values between 0 and 1: higher in another run than in the first; lower in another; the same in all, passed or
not."""
PASSED = Outcome.PASSED.value
DECIMALS = 12
_Key = tuple[str, str, int]
_Results = Mapping[_Key, ItemVerdict]


@dataclass(frozen=True)
class ComparedItem:
    """One item in all compared runs."""

    kind: str
    results: tuple[ItemVerdict, ...]


@dataclass(frozen=True)
class ComparedRun:
    """One run compared with the first."""

    pairs: Pairs
    """Problems that both runs have, each counted once; only these are evidence. With values between 0 and 1, `only_first`
    and `only_second` are the problems on which one of them is higher."""
    difference: Interval
    """This run minus the first."""
    p_value: float
    adjusted: float
    """The p-value, corrected for the number of runs compared with the first."""
    left_out: int
    """Shared items with an error in either run that is not the model's fault."""
    only_one: int
    metric: Metric = Metric.SHARE

    @property
    def verdict(self) -> str:
        """`better`, `worse`, `same`, `unclear` or `nothing` (in common)."""
        if not self.pairs.total:
            return "nothing"
        if not self.pairs.only_first + self.pairs.only_second:
            return "same"
        if self.adjusted >= SIGNIFICANT:
            return "unclear"
        return "better" if self.difference.estimate > 0 else "worse"

    @property
    def passed_first(self) -> int:
        """Shared problems that the first run passes."""
        return self.pairs.both + self.pairs.only_first

    @property
    def passed_second(self) -> int:
        return self.pairs.both + self.pairs.only_second

    @property
    def sentence(self) -> str:
        return self.headline("A", "B")

    def headline(self, first: str, second: str) -> str:
        """What the shared problems say about two runs, which are called by these names."""
        total = self.pairs.total
        if not total:
            return "No shared problems: the runs cannot be compared."
        shared = f"{total:,} shared problem{'' if total == 1 else 's'}"
        if self.metric is Metric.MEAN:
            counts = f"{second} is {100 * self.difference.estimate:+.1f} points from {first}".replace("-", "\N{MINUS SIGN}")
        else:
            counts = f"{first} passes {self.passed_first:,}, {second} {self.passed_second:,}"
        p_value = f"(p = {self.adjusted:.3g})"
        verdict = {
            "same": "the same values on each" if self.metric is Metric.MEAN else "the same ones",
            "unclear": f"no clear difference {p_value}",
            "better": f"{second} is better {p_value}",
            "worse": f"{first} is better {p_value}",
        }[self.verdict]
        return f"{shared}: {counts}; {verdict}."


@dataclass(frozen=True)
class Comparison:
    against: list[ComparedRun]
    """In the order of the runs after the first."""
    items: list[ComparedItem]
    """The items that all runs have, by kind and then in the order of the first run's plan."""
    counts: dict[str, int]

    def of_kind(self, kind: str) -> list[ComparedItem]:
        return [item for item in self.items if item.kind == kind] if kind else self.items


def compare(runs: Sequence[Sequence[ItemVerdict]]) -> Comparison:
    """Compare two or more runs. Items are paired by benchmark, problem and sample; errors that are not the model's fault are
    left out. A problem with several samples counts once, by whether most of them passed or by their mean value, since they
    are not independent."""
    results = [{(item.benchmark, item.problem_id, item.sample_index): item for item in run} for run in runs]
    first, others = results[0], results[1:]
    paired = [_paired(first, other) for other in others]
    adjusted = holm_adjusted([problems.p_value for problems in paired])
    items = []
    for key, item in first.items():
        rows = (item, *(other[key] for other in others if key in other))
        if len(rows) == len(results) and not any(row.outcome in NOT_THE_MODELS_FAULT for row in rows):
            items.append(ComparedItem(_kind(rows), rows))
    items.sort(key=lambda item: (KINDS.index(item.kind), item.results[0].position))
    counts = Counter(item.kind for item in items)
    return Comparison(
        [_against(problems, p_value) for problems, p_value in zip(paired, adjusted, strict=True)],
        items,
        {kind: counts[kind] for kind in KINDS},
    )


@dataclass(frozen=True)
class _Paired:
    """What two runs have in common: (samples, value in the first run, value in the other) of each problem."""

    problems: Sequence[tuple[int, float, float]]
    left_out: int
    only_one: int

    @property
    def metric(self) -> Metric:
        fractional = any(not isinstance(total, int) for _, *totals in self.problems for total in totals)
        return Metric.MEAN if fractional else Metric.SHARE

    @property
    def pairs(self) -> Pairs:
        if self.metric is Metric.SHARE:
            return Pairs.of([(2 * first > count, 2 * other > count) for count, first, other in self.problems])
        lower, higher = (sum(sign * change > 0 for change in self.differences) for sign in (-1, 1))
        return Pairs(len(self.problems) - lower - higher, lower, higher, 0)

    @property
    def differences(self) -> list[float]:
        return [round((other - first) / count, DECIMALS) for count, first, other in self.problems]

    @property
    def p_value(self) -> float:
        if self.metric is Metric.MEAN:
            return swap_test(self.differences)
        return exact_mcnemar(self.pairs.only_first, self.pairs.only_second)


def _paired(first: _Results, other: _Results) -> _Paired:
    problems: dict[tuple[str, str], tuple[int, float, float]] = {}
    left_out = shared = 0
    for key, item in first.items():
        if (other_item := other.get(key)) is None:
            continue
        shared += 1
        if item.outcome in NOT_THE_MODELS_FAULT or other_item.outcome in NOT_THE_MODELS_FAULT:
            left_out += 1
            continue
        count, total, other_total = problems.get(key[:2], (0, 0, 0))
        problems[key[:2]] = (count + 1, total + _value(item), other_total + _value(other_item))
    return _Paired(list(problems.values()), left_out, len(first) + len(other) - 2 * shared)


def _against(paired: _Paired, adjusted: float) -> ComparedRun:
    pairs = paired.pairs
    if paired.metric is Metric.MEAN:
        difference = mean_difference(paired.differences)
    else:
        difference = paired_difference(Pairs(pairs.both, pairs.only_second, pairs.only_first, pairs.neither))
    return ComparedRun(pairs, difference, paired.p_value, adjusted, paired.left_out, paired.only_one, paired.metric)


def _value(item: ItemVerdict) -> float:
    return value_of(item.outcome, item.score)


def _kind(rows: Sequence[ItemVerdict]) -> str:
    if any(not isinstance(_value(row), int) for row in rows):
        return _kind_of_values([_value(row) for row in rows], passed=rows[0].outcome == PASSED)
    first, *others = (row.outcome == PASSED for row in rows)
    if first:
        return "both" if all(others) else "broken"
    return "fixed" if any(others) else "neither"


def _kind_of_values(values: Sequence[float], *, passed: bool) -> str:
    first, *others = values
    if max(others) > first:
        return "fixed"
    if min(others) < first:
        return "broken"
    return "both" if passed else "neither"
