"""The panel of a schedule: problems drawn once, seeded and stratified, so that its runs can be compared in pairs.

A problem that a model always or never solves cannot show a change. The draw `informative` therefore prefers problems on
which this model has both passed and failed, then those without enough results, and uses the others only to fill up. Runs
before the draw are never part of the comparison, so choosing by their results does not bias it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlmodel import Session

from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.errors import TooFewProblems
from orchestrator.datasets.packs.pack import Entry
from orchestrator.datasets.packs.selection import Selection, choose
from orchestrator.runs.queueing.drafts import check_size, item_count
from orchestrator.runs.queueing.plan import CPU_LIMITS_S
from orchestrator.schedules import queries as schedule_queries
from orchestrator.schedules.tables import Schedule, SchedulePanel
from runner.contract.run_spec import BenchmarkSpec

SETTLED_FROM = 3
"""With this many equal results a problem counts as always or never solved."""


class Draw(StrEnum):
    ALL = "all"  #: a stratified sample of the whole pack
    INFORMATIVE = "informative"  #: first the problems that this model solves only sometimes


@dataclass(frozen=True)
class PanelDraw:
    problem_ids: list[str]
    how: str


def draw_panel(
    benchmark: str,
    entries: Sequence[Entry],
    size: int,
    seed: int,
    draw: Draw = Draw.ALL,
    history: Mapping[str, tuple[int, float]] | None = None,
) -> PanelDraw:
    """`history` has (results, passes) of this model for each problem."""
    if size > len(entries):
        raise TooFewProblems(benchmark, size, len(entries))
    if draw is Draw.ALL:
        ids = choose(benchmark, entries, Selection(sample_size=size, seed=seed))
        return PanelDraw(ids, f"{benchmark}: {size} of {len(entries)} problems, stratified, seed {seed}.")
    tiers = _tiers(entries, history or {})
    problem_ids: list[str] = []
    parts = []
    for name, members in tiers.items():
        take = min(size - len(problem_ids), len(members))
        if take:
            problem_ids += choose(benchmark, entries, Selection(ids=members, sample_size=take, seed=seed))
        parts.append(f"{take} of {len(members)} {name}")
    return PanelDraw(problem_ids, f"{benchmark}: {', '.join(parts)}; stratified within each, seed {seed}.")


def _tiers(entries: Sequence[Entry], history: Mapping[str, tuple[int, float]]) -> dict[str, list[str]]:
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


Histories = dict[str, dict[str, tuple[int, float]]]
"""Benchmark, problem: (results, sum of their values) of the model."""


def histories_of(session: Session, schedule: Schedule) -> Histories:
    """The history that an informative draw uses; empty for another draw."""
    if schedule.draw != Draw.INFORMATIVE:
        return {}
    return {name: schedule_queries.problem_tallies(session, schedule.model_id, name) for name in schedule.benchmarks}


def new_panel(catalogue: Catalogue, schedule: Schedule, histories: Histories, now: datetime) -> SchedulePanel:
    """Draw the schedule's problems. Blocking: it opens packs. The version is set when it is stored."""
    specs, how = [], []
    for name in schedule.benchmarks:
        info = catalogue.get(name)
        drawn = draw_panel(
            name, catalogue.entries(name), schedule.sample_size, schedule.seed, Draw(schedule.draw), histories.get(name)
        )
        specs.append(
            BenchmarkSpec(
                name=info.name,
                adapter=info.adapter,
                pack_digest=info.pack_digest,
                problem_ids=drawn.problem_ids,
                cpu_s=CPU_LIMITS_S.get(info.name),
                rules=info.rules,
            )
        )
        how.append(drawn.how)
    check_size(item_count(specs, schedule.samples_per_problem))
    return SchedulePanel(
        model_id=schedule.model_id,
        version=0,
        seed=schedule.seed,
        draw=schedule.draw,
        how=" ".join(how),
        benchmarks=[spec.model_dump() for spec in specs],
        problems=sum(len(spec.problem_ids) for spec in specs),
        created_at=now,
    )
