"""Two runs on the same problems, paired item by item: what was fixed, what was broken, and whether that is chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.db.page_queries import ItemLine
from orchestrator.stats.intervals import Interval
from orchestrator.stats.paired import Pairs, exact_mcnemar, paired_difference
from runner.contract import NOT_THE_MODELS_FAULT, Outcome

SIGNIFICANT = 0.05
KINDS = ("fixed", "broken", "both", "neither")


@dataclass(frozen=True)
class PairedItem:
    """One item in both runs: `fixed`, `broken`, `both` (passed) or `neither`."""

    kind: str
    first: ItemLine
    second: ItemLine


@dataclass(frozen=True)
class Comparison:
    pairs: Pairs
    """Of problems, each counted once; only these are evidence."""
    difference: Interval
    """Second minus first."""
    p_value: float
    items: list[PairedItem]
    counts: dict[str, int]
    left_out: int
    only_one: int

    @property
    def verdict(self) -> str:
        """In one sentence."""
        if not self.items:
            return "The two runs have no item in common, so nothing can be said."
        differing = self.pairs.only_first + self.pairs.only_second
        if differing == 0:
            return "Both runs pass and fail the same problems."
        if self.p_value < SIGNIFICANT:
            better = "second" if self.pairs.only_second > self.pairs.only_first else "first"
            return f"The {better} run is better: a split this uneven is unlikely to be chance (p = {self.p_value:.3g})."
        return f"The difference may well be chance (p = {self.p_value:.3g})."


def compare(first: Sequence[ItemLine], second: Sequence[ItemLine]) -> Comparison:
    """Items are paired by benchmark, problem and sample; errors that are not the model's fault are left out.

    A problem with several samples counts once, by whether most of its samples passed: samples are not independent.
    """
    one, other = {_key(item): item for item in first}, {_key(item): item for item in second}
    shared = [key for key in one if key in other]
    usable = [key for key in shared if not (_foreign(one[key]) or _foreign(other[key]))]
    items = [PairedItem(_kind(one[key], other[key]), one[key], other[key]) for key in usable]
    problems: dict[tuple[str, str], list[PairedItem]] = {}
    for item in items:
        problems.setdefault((item.first.benchmark, item.first.problem_id), []).append(item)
    pairs = Pairs.of([(_mostly([i.first for i in each]), _mostly([i.second for i in each])) for each in problems.values()])
    swapped = Pairs(pairs.both, pairs.only_second, pairs.only_first, pairs.neither)
    return Comparison(
        pairs=pairs,
        difference=paired_difference(swapped),
        p_value=exact_mcnemar(pairs.only_first, pairs.only_second),
        items=items,
        counts={kind: sum(item.kind == kind for item in items) for kind in KINDS},
        left_out=len(shared) - len(usable),
        only_one=len(one) + len(other) - 2 * len(shared),
    )


def _key(item: ItemLine) -> tuple[str, str, int]:
    return item.benchmark, item.problem_id, item.sample_index


def _foreign(item: ItemLine) -> bool:
    return Outcome(item.outcome) in NOT_THE_MODELS_FAULT


def _passed(item: ItemLine) -> bool:
    return item.outcome == Outcome.PASSED


def _mostly(items: Sequence[ItemLine]) -> bool:
    return 2 * sum(map(_passed, items)) > len(items)


def _kind(first: ItemLine, second: ItemLine) -> str:
    if _passed(first):
        return "both" if _passed(second) else "broken"
    return "fixed" if _passed(second) else "neither"
