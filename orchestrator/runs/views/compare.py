"""Compares runs with the first on the same problems, item by item: what was fixed or broken, and whether by chance. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.runs.reports.queries import Verdict
from orchestrator.stats.intervals import Interval
from orchestrator.stats.paired import Pairs, exact_mcnemar, holm_adjusted, paired_difference
from runner.contract.events import NOT_THE_MODELS_FAULT, Outcome

SIGNIFICANT = 0.05
KINDS = ("fixed", "broken", "both", "neither")
"""Passed by another run but not the first; by the first but not all others; by all; by none."""
PASSED = Outcome.PASSED.value
_Key = tuple[str, str, int]
_Results = Mapping[_Key, Verdict]


@dataclass(frozen=True)
class ComparedItem:
    """One item in all compared runs."""

    kind: str
    results: tuple[Verdict, ...]


@dataclass(frozen=True)
class ComparedRun:
    """One run compared with the first."""

    pairs: Pairs
    """Problems that both runs have, each counted once; only these are evidence."""
    difference: Interval
    """This run minus the first."""
    p_value: float
    adjusted: float
    """The p-value, corrected for the number of runs compared with the first."""
    left_out: int
    """Shared items with an error in either run that is not the model's fault."""
    only_one: int

    @property
    def verdict(self) -> str:
        """`better`, `worse`, `same`, `unclear` or `nothing` (in common)."""
        if not self.pairs.total:
            return "nothing"
        if not self.pairs.only_first + self.pairs.only_second:
            return "same"
        if self.adjusted >= SIGNIFICANT:
            return "unclear"
        return "better" if self.pairs.only_second > self.pairs.only_first else "worse"

    @property
    def sentence(self) -> str:
        return {
            "nothing": "No shared problems: the runs cannot be compared.",
            "same": "Both runs pass the same problems.",
            "unclear": f"No clear difference (p = {self.adjusted:.3g}).",
            "better": f"B is better than A (p = {self.adjusted:.3g}).",
            "worse": f"A is better than B (p = {self.adjusted:.3g}).",
        }[self.verdict]


@dataclass(frozen=True)
class Comparison:
    against: list[ComparedRun]
    """In the order of the runs after the first."""
    items: list[ComparedItem]
    """The items that all runs have, by kind and then in the order of the first run's plan."""
    counts: dict[str, int]

    def of_kind(self, kind: str) -> list[ComparedItem]:
        return [item for item in self.items if item.kind == kind] if kind else self.items


def compare(runs: Sequence[Sequence[Verdict]]) -> Comparison:
    """Compare two or more runs. Items are paired by benchmark, problem and sample; errors that are not the model's fault are
    left out. A problem with several samples counts once, by whether most of them passed, since they are not independent."""
    results = [{(item.benchmark, item.problem_id, item.sample_index): item for item in run} for run in runs]
    first, others = results[0], results[1:]
    tests = [_pairs(first, other) for other in others]
    adjusted = holm_adjusted([exact_mcnemar(pairs.only_first, pairs.only_second) for pairs, _, _ in tests])
    items = []
    for key, item in first.items():
        rows = (item, *(other[key] for other in others if key in other))
        if len(rows) == len(results) and not any(row.outcome in NOT_THE_MODELS_FAULT for row in rows):
            items.append(ComparedItem(_kind(rows), rows))
    items.sort(key=lambda item: (KINDS.index(item.kind), item.results[0].position))
    counts = Counter(item.kind for item in items)
    return Comparison(
        [_against(*test, p_value) for test, p_value in zip(tests, adjusted, strict=True)],
        items,
        {kind: counts[kind] for kind in KINDS},
    )


def _pairs(first: _Results, other: _Results) -> tuple[Pairs, int, int]:
    """Pairs by problem, the number of items left out, and the number of items that only one of the two runs has."""
    problems: dict[tuple[str, str], list[int]] = {}
    left_out = shared = 0
    for key, item in first.items():
        if (other_item := other.get(key)) is None:
            continue
        shared += 1
        if item.outcome in NOT_THE_MODELS_FAULT or other_item.outcome in NOT_THE_MODELS_FAULT:
            left_out += 1
            continue
        tally = problems.setdefault(key[:2], [0, 0, 0])
        tally[0] += 1
        tally[1] += item.outcome == PASSED
        tally[2] += other_item.outcome == PASSED
    pairs = Pairs.of([(2 * passed > count, 2 * two > count) for count, passed, two in problems.values()])
    return pairs, left_out, len(first) + len(other) - 2 * shared


def _against(pairs: Pairs, left_out: int, only_one: int, adjusted: float) -> ComparedRun:
    swapped = Pairs(pairs.both, pairs.only_second, pairs.only_first, pairs.neither)
    p_value = exact_mcnemar(pairs.only_first, pairs.only_second)
    return ComparedRun(pairs, paired_difference(swapped), p_value, adjusted, left_out, only_one)


def _kind(rows: Sequence[Verdict]) -> str:
    first, *others = (row.outcome == PASSED for row in rows)
    if first:
        return "both" if all(others) else "broken"
    return "fixed" if any(others) else "neither"
