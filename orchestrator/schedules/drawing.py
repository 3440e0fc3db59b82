"""Draws the panel of a schedule from the catalogue's packs, as a row that can be stored."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session

from orchestrator.datasets.catalogue import Catalogue
from orchestrator.runs.drafts import check_size, item_count
from orchestrator.runs.plan import CPU_LIMITS_S
from orchestrator.schedules import queries as schedule_queries
from orchestrator.schedules.panel import Draw, draw_panel
from orchestrator.schedules.tables import Schedule, SchedulePanel
from runner.contract.run_spec import BenchmarkSpec

Histories = dict[str, dict[str, tuple[int, int]]]
"""Benchmark, problem: (results, passes) of the model."""


def histories_of(session: Session, wanted: Schedule) -> Histories:
    """What an informative draw goes by; nothing for another."""
    if wanted.draw != Draw.INFORMATIVE:
        return {}
    return {name: schedule_queries.problem_tallies(session, wanted.model_id, name) for name in wanted.benchmarks}


def new_panel(catalogue: Catalogue, wanted: Schedule, histories: Histories, now: datetime) -> SchedulePanel:
    """Blocking: it opens packs. The version is given when it is stored."""
    specs, how = [], []
    for name in wanted.benchmarks:
        info = catalogue.get(name)
        drawn = draw_panel(
            name, catalogue.entries(name), wanted.sample_size, wanted.seed, Draw(wanted.draw), histories.get(name)
        )
        specs.append(
            BenchmarkSpec(
                name=info.name,
                adapter=info.adapter,
                pack_digest=info.pack_digest,
                problem_ids=drawn.problem_ids,
                cpu_s=CPU_LIMITS_S.get(info.name),
            )
        )
        how.append(drawn.how)
    check_size(item_count(specs, wanted.samples_per_problem))
    return SchedulePanel(
        model_id=wanted.model_id,
        version=0,
        seed=wanted.seed,
        draw=wanted.draw,
        how=" ".join(how),
        benchmarks=[spec.model_dump() for spec in specs],
        problems=sum(len(spec.problem_ids) for spec in specs),
        created_at=now,
    )
