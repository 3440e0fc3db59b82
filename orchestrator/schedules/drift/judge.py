"""Judges the ended runs of schedules: reads the series, compares it, stores the verdict, raises alerts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from itertools import takewhile
from typing import Any

import structlog
from sqlmodel import Session

from orchestrator.alerts import alerts
from orchestrator.alerts import queries as schedule_alert_queries
from orchestrator.db.session import Database
from orchestrator.db.workspaces import Actor, acting_as
from orchestrator.models import queries as model_queries
from orchestrator.runs import item_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.lifecycle import Status
from orchestrator.runs.reasons import sentence
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.tables import ContainerRun
from orchestrator.schedules import queries as schedule_queries
from orchestrator.schedules.drift.series import (
    WINDOWS,
    Baseline,
    BaselineKind,
    DriftComparison,
    DriftVerdict,
    Look,
    Results,
    compare,
    not_comparable,
)
from orchestrator.schedules.tables import ScheduleFire
from orchestrator.stats.summary import COMPARABLE_UP_TO, value_of
from orchestrator.system.clock import Clock
from runner.contract.events import NOT_THE_MODELS_FAULT, Outcome
from runner.contract.run_spec import BenchmarkSpec, RunKind

log = structlog.get_logger()

AT_ONCE = 20
CHANGED = (DriftVerdict.WORSE, DriftVerdict.BETTER)


class Judge:
    def __init__(self, db: Database, leadership: Leadership, clock: Clock) -> None:
        self._db = db
        self._leadership = leadership
        self._clock = clock

    async def round(self) -> bool:
        """Judge ended runs; returns whether there may be more."""
        if self._leadership.epoch is None:
            return False
        waiting = await self._db.read(lambda s: [fire for fire, _ in schedule_queries.unjudged(s, AT_ONCE)])
        for fire in waiting:
            with acting_as(Actor(fire.workspace_id)):
                await self._judge(fire.model_id, fire.instant)
        return len(waiting) == AT_ONCE

    async def _judge(self, model_id: int, instant: datetime) -> None:
        case = await self._db.read(lambda s: read_case(s, model_id, instant))
        comparison = await asyncio.to_thread(case.judge)
        now = self._clock.now()
        await self._leadership.write(lambda s: store(s, model_id, instant, case, comparison, now))
        log.info("run judged", action="run_judged", run_id=case.run_id, verdict=comparison.verdict.value)


class Case:
    """One ended run with everything needed to judge it."""

    def __init__(self, run: ContainerRun, why_not: str | None, series: list[Look], baseline: Baseline, rate: float) -> None:
        self.run_id, self.status = run.id, run.status
        self.why = run.error_message or sentence(run.reason) or ""
        self.measured = bool(run.score and run.score.get("n"))
        self.why_not = why_not
        self.series = series
        self.baseline = baseline
        self.alarm_rate = rate
        self.look = 1
        self.before: str | None = None
        """The previous verdict of the series."""

    def judge(self) -> DriftComparison:
        if self.why_not is not None:
            return not_comparable(self.why_not)
        return compare(self.series, self.baseline, look=self.look, alarm_rate=self.alarm_rate)


def read_case(session: Session, model_id: int, instant: datetime) -> Case:
    fire = schedule_queries.fire(session, model_id, instant)
    assert fire is not None
    assert fire.run_id is not None
    run = run_queries.get(session, fire.run_id)
    assert run is not None
    schedule = schedule_queries.get(session, model_id)
    why_not = _why_not(session, fire, run)
    baseline, rate, pool = Baseline(), 0.05, Baseline.runs
    if schedule is not None:
        results = results_of(session, schedule.baseline_run_id) if schedule.baseline_run_id else None
        kind, pool, rate = BaselineKind(schedule.baseline), schedule.baseline_runs, schedule.alarm_rate
        baseline = Baseline(kind, pool, results)
    chosen_id = schedule.baseline_run_id if schedule is not None and baseline.kind is BaselineKind.RUN else None
    if why_not is None and chosen_id and chosen_id != run.id and baseline.chosen is not None:
        why_not = _baseline_problem(session, run, chosen_id, baseline.chosen)
    if why_not is not None:
        return Case(run, why_not, [], baseline, rate)
    earlier = schedule_queries.looks(session, model_id, fire.panel_version, limit=pool + max(WINDOWS))
    if earlier and earlier[0].run_id:
        why_not = _other_prompts(session, run, earlier[0].run_id) or _other_items(session, run, earlier[0].run_id)
        if why_not is not None:
            return Case(run, why_not, [], baseline, rate)
    series = [Look(run.id, None, results_of(session, run.id))]
    series += [
        Look(look.run_id, DriftVerdict(look.verdict) if look.verdict else None, results_of(session, look.run_id))
        for look in earlier
        if look.run_id is not None
    ]
    if baseline.kind is BaselineKind.RUN and schedule is not None:
        series = list(takewhile(lambda look: look.run_id != schedule.baseline_run_id, series))  # only later runs
    case = Case(run, None if series else "This run is the baseline.", series, baseline, rate)
    if earlier:
        case.look, case.before = (earlier[0].look or 0) + 1, earlier[0].verdict
    return case


def results_of(session: Session, run_id: str) -> Results:
    """(results, sum of their values) of each problem; errors that are not the model's fault do not count."""
    tallies: dict[tuple[str, str], tuple[int, float]] = {}
    for benchmark, problem_id, _, outcome, score in item_queries.verdicts(session, run_id):
        if Outcome(outcome) not in NOT_THE_MODELS_FAULT:
            results, total = tallies.get((benchmark, problem_id), (0, 0))
            tallies[benchmark, problem_id] = (results + 1, total + value_of(outcome, score))
    return tallies


def _why_not(session: Session, fire: ScheduleFire, run: ContainerRun) -> str | None:
    """Why a run is left out of the series, or None."""
    if run.status != Status.COMPLETED:
        return f"The run ended {run.status}. {run.error_message or sentence(run.reason) or ''}".rstrip()
    if not run.score or not run.score.get("comparable"):
        return "More than 2 % of the results are provider or infrastructure errors, or the run was cut short."
    panel = schedule_queries.panel(session, fire.model_id, fire.panel_version)
    drawn = {row["name"]: row["pack_digest"] for row in panel.benchmarks} if panel else {}
    if {part.name: part.pack_digest for part in run.task.benchmarks} != drawn:
        what = "harness" if run.kind == RunKind.HARNESS else "dataset"
        return f"The {what} has changed since the panel was drawn; draw a new panel to continue comparing."
    on_panel = _problems(map(BenchmarkSpec.model_validate, panel.benchmarks)) if panel else set()
    if panel is not None and _problems(run.task.benchmarks) != on_panel:
        return "The run is not on the problems of the panel."
    return None


def _problems(benchmarks: Iterable[BenchmarkSpec]) -> set[tuple[str, str]]:
    return {(part.name, problem_id) for part in benchmarks for problem_id in part.problem_ids}


def _other_prompts(session: Session, run: ContainerRun, earlier_id: str) -> str | None:
    """Why a run cannot be compared with an earlier one: its prompts are different."""
    names = [part.name for part in run.task.benchmarks]
    now, before = (item_queries.prompt_versions(session, run_id, names) for run_id in (run.id, earlier_id))
    for name in names:
        if now[name] and before[name] and now[name] != before[name]:
            return (
                f"The prompts of {name} have changed ({before[name]} before, {now[name]} now); draw a new panel to continue "
                "comparing."
            )
    return None


def _other_items(session: Session, run: ContainerRun, earlier_id: str) -> str | None:
    """Why a harness's run cannot be compared with an earlier one: items of that one are missing. A harness does not leave
    items out by chance, so those that remain would mislead.
    """
    if run.kind != RunKind.HARNESS:
        return None
    before = _items(session, earlier_id)
    missing = len(before - _items(session, run.id))
    if missing <= COMPARABLE_UP_TO * len(before):
        return None
    return (
        f"{missing} of the {len(before)} items of the previous comparable run are not in this one. Items are compared by "
        "their ids: the harness has to give an item the same id in every run. Draw a new panel to begin a new series."
    )


def _items(session: Session, run_id: str) -> set[tuple[str, str]]:
    return {(benchmark, problem_id) for benchmark, problem_id, _ in item_queries.keys(session, run_id)}


def _baseline_problem(session: Session, run: ContainerRun, baseline_id: str, results: Results) -> str | None:
    """Why a run cannot be compared with the run that was chosen as its baseline."""
    baseline = run_queries.get(session, baseline_id)
    digests = {part.name: part.pack_digest for part in baseline.task.benchmarks} if baseline is not None else {}
    if any(digests.get(part.name) != part.pack_digest for part in run.task.benchmarks):
        what = "is of another harness" if run.kind == RunKind.HARNESS else "is on another version of the dataset"
        return f"The baseline run {what}; choose another baseline."
    problems = _items(session, run.id) if run.kind == RunKind.HARNESS else _problems(run.task.benchmarks)
    if missing := len(problems - results.keys()):
        share = f"{missing} of the panel's {len(problems)} problems"
        if missing > COMPARABLE_UP_TO * len(problems):
            return f"The baseline run has no result on {share}; choose another baseline."
    return _other_prompts(session, run, baseline_id)


def store(
    session: Session, model_id: int, instant: datetime, case: Case, comparison: DriftComparison, now: datetime
) -> None:
    """Store the verdict once, together with its alert."""
    fire = schedule_queries.fire(session, model_id, instant)
    if fire is None or fire.verdict is not None:
        return
    stored = as_stored(comparison)
    fire.verdict, fire.comparison, fire.judged_at = comparison.verdict.value, stored, now
    fire.look = case.look if case.why_not is None else None
    session.add(fire)
    model = model_queries.get(session, model_id)
    slug = model.slug if model else str(model_id)
    if case.status == Status.FAILED:
        alert = alerts.run_failed(model_id, slug, case.run_id, case.status, case.why, now, measured=case.measured)
        schedule_alert_queries.add(session, alert)
    elif comparison.verdict in CHANGED and comparison.verdict != case.before:
        schedule_alert_queries.add(session, alerts.drift(model_id, slug, case.run_id, stored, now))


def as_stored(comparison: DriftComparison) -> dict[str, Any]:
    values = asdict(comparison)
    effect = values.pop("effect")
    values["verdict"] = comparison.verdict.value
    for key, name in (("effect", "estimate"), ("low", "low"), ("high", "high")):
        values[key] = effect[name] if effect else None
    values["flipped"] = list(map(dict, values["flipped"]))
    return values
