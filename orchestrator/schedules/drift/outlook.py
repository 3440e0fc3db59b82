"""What a stored schedule can see: the terms of `power` from its own rows."""

from __future__ import annotations

from dataclasses import replace

from sqlmodel import Session

from orchestrator.schedules import queries as schedule_queries
from orchestrator.schedules.drift.power import Sight, spread
from orchestrator.schedules.drift.series import BaselineKind
from orchestrator.schedules.tables import Schedule


def sight_of(session: Session, schedule: Schedule) -> Sight:
    """Going by the results of this model on the panel; by an assumption while there are none."""
    panel = schedule_queries.panel(session, schedule.model_id, schedule.panel_version)
    histories: list[tuple[int, int]] = []
    for spec in panel.benchmarks if panel else []:
        tallies = schedule_queries.problem_tallies(session, schedule.model_id, spec["name"])
        histories += [tallies[problem_id] for problem_id in spec["problem_ids"] if problem_id in tallies]
    looks = schedule_queries.looks(session, schedule.model_id, schedule.panel_version, limit=1)
    sight = Sight(
        panel.problems if panel else schedule.sample_size,
        samples=schedule.samples_per_problem,
        pool=schedule.baseline_runs if schedule.baseline == BaselineKind.ROLLING else 1,
        alarm_rate=schedule.alarm_rate,
    )
    if seen := spread(histories):
        sight = replace(sight, spread=seen, assumed=False)
    if looks:
        sight = replace(sight, look=max(sight.look, (looks[0].look or 0) + sight.within))
    return sight
