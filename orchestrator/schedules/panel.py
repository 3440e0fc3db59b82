"""The panel of a schedule: problems drawn once, seeded and stratified, so that its runs can be compared in pairs. Pure.

A problem that a model always or never solves cannot show a change. The draw `informative` therefore takes first the problems
on which this model has both passed and failed, then those it is not known on, and the others only to fill up. Runs before
the draw are never part of the comparison, so that choosing by their results does not bias it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.datasets.errors import TooFewProblems
from orchestrator.datasets.packs.pack import Entry
from orchestrator.datasets.packs.selection import Selection, choose

SETTLED_FROM = 3
"""So many equal results, and a problem counts as always or never solved."""


class Draw(StrEnum):
    ALL = "all"  #: a stratified sample of the whole pack
    INFORMATIVE = "informative"  #: first the problems that this model solves only sometimes


@dataclass(frozen=True)
class Drawn:
    problem_ids: list[str]
    how: str


def draw_panel(
    benchmark: str,
    entries: Sequence[Entry],
    size: int,
    seed: int,
    draw: Draw = Draw.ALL,
    history: Mapping[str, tuple[int, int]] | None = None,
) -> Drawn:
    """`history` has (results, passes) of this model for each problem."""
    if size > len(entries):
        raise TooFewProblems(benchmark, size, len(entries))
    if draw is Draw.ALL:
        ids = choose(benchmark, entries, Selection(sample_size=size, seed=seed))
        return Drawn(ids, f"{benchmark}: {size} of {len(entries)} problems, stratified, seed {seed}.")
    tiers = _tiers(entries, history or {})
    chosen: list[str] = []
    told = []
    for name, members in tiers.items():
        take = min(size - len(chosen), len(members))
        if take:
            chosen += choose(benchmark, entries, Selection(ids=members, sample_size=take, seed=seed))
        told.append(f"{take} of {len(members)} {name}")
    return Drawn(chosen, f"{benchmark}: {', '.join(told)}; stratified within each, seed {seed}.")


def _tiers(entries: Sequence[Entry], history: Mapping[str, tuple[int, int]]) -> dict[str, list[str]]:
    tiers: dict[str, list[str]] = {"solved sometimes": [], "not known yet": [], "always or never solved": []}
    for entry in entries:
        results, passed = history.get(entry.id, (0, 0))
        if 0 < passed < results:
            tiers["solved sometimes"].append(entry.id)
        elif results < SETTLED_FROM:
            tiers["not known yet"].append(entry.id)
        else:
            tiers["always or never solved"].append(entry.id)
    return tiers
