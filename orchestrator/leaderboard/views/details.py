"""What a ranked run says besides its score: difficulty, before and after the cut-off, pass@k, cost, tokens. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from orchestrator.datasets.packs.pack import Entry
from orchestrator.runs.views.deltas import UsageView
from orchestrator.runs.views.run import EASE
from orchestrator.schedules.drift.series import Results
from orchestrator.stats.pass_at_k import mean_pass_at_k, possible_k

UNKNOWN = UsageView(None, None, None, None)


@dataclass(frozen=True)
class PlaceDetails:
    usage: UsageView = UNKNOWN
    by_difficulty: dict[str, float] = field(default_factory=dict)
    """Mean value by difficulty, easy to hard."""
    pass_at_k: dict[int, float] = field(default_factory=dict)
    """For k above 1; empty if there is one sample of each problem."""
    before: float | None = None
    """Mean value on problems published up to the model's training cut-off, if there are problems on both sides."""
    after: float | None = None


def place_details(
    results: Results, entries: Mapping[str, Entry], cut_off: date | None, usage: UsageView | None
) -> PlaceDetails:
    """From the results on the problems of the board."""
    groups: dict[str, list[float]] = defaultdict(list)
    sides: dict[bool, list[float]] = {True: [], False: []}
    for (_, problem_id), (count, total) in results.items():
        entry = entries.get(problem_id)
        value = total / count
        if entry is not None and entry.difficulty:
            groups[entry.difficulty].append(value)
        if entry is not None and entry.day is not None and cut_off is not None:
            sides[entry.day <= cut_off].append(value)
    ranks = {name: index for index, name in enumerate(EASE)}
    ordered = sorted(groups.items(), key=lambda group: (ranks.get(group[0], len(ranks)), group[0]))
    both = all(sides.values())
    return PlaceDetails(
        usage=usage or UNKNOWN,
        by_difficulty={name: _mean(values) for name, values in ordered},
        pass_at_k=_pass_at_k(results),
        before=_mean(sides[True]) if both else None,
        after=_mean(sides[False]) if both else None,
    )


def _pass_at_k(results: Results) -> dict[int, float]:
    tallies = [(count, total) for count, total in results.values() if isinstance(total, int)]
    if len(tallies) != len(results):
        return {}
    return {k: mean_pass_at_k(tallies, k) for k in possible_k(tallies) if k > 1}


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
