"""Operations on schedules: save, pause, delete, run now, read. A change is committed before it returns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlmodel import Session

from orchestrator.datasets.catalogue import Catalogue
from orchestrator.db.idempotency import Idempotency, answer_once
from orchestrator.db.session import Database
from orchestrator.errors import Conflict, Invalid, NotFound
from orchestrator.models import queries as model_queries
from orchestrator.runs import item_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.queueing.drafts import check_size, item_count
from orchestrator.runs.service import RunService
from orchestrator.schedules import queries as schedule_queries
from orchestrator.schedules.drift.power import DetectionPower, Moments, spread
from orchestrator.schedules.drift.series import BaselineKind
from orchestrator.schedules.firing.cron import parse
from orchestrator.schedules.firing.decisions import FireOutcome
from orchestrator.schedules.firing.instants import next_instant, zone
from orchestrator.schedules.firing.launch import Launcher
from orchestrator.schedules.firing.rounds import settle
from orchestrator.schedules.harness_panel import harness_panel, with_harness
from orchestrator.schedules.panel import histories_of, new_panel
from orchestrator.schedules.tables import Schedule, ScheduleFire, SchedulePanel
from orchestrator.system.clock import Clock
from runner.contract.run_spec import BenchmarkSpec

_PANEL_FIELDS = ("harness", "benchmarks", "sample_size", "seed", "draw")
COMPARABLE_KINDS = ("benchmark", "grade")
_OWN = {"model_id", "created_at", "updated_at"}
_WHEN = ("cron_expression", "timezone")


@dataclass(frozen=True)
class SavedSchedule:
    schedule: Schedule
    created: bool


class ScheduleService:
    def __init__(
        self,
        db: Database,
        catalogue: Catalogue,
        runs: RunService,
        clock: Clock,
        launcher: Launcher,
        *,
        wake: Callable[[], None],
    ) -> None:
        self._db = db
        self._catalogue = catalogue
        self._runs = runs
        self._clock = clock
        self._launcher = launcher
        self._wake = wake

    async def save(self, model: int | str, changes: dict[str, Any], *, redraw: bool = False) -> SavedSchedule:
        """Create a model's schedule, or change the given fields. A new panel is drawn if a field of the draw changes."""
        llm_model = await self._runs.find_model(model)
        model_id = llm_model.id or 0
        current = await self._db.read(lambda s: schedule_queries.get(s, model_id))
        now = self._clock.now()
        changes = with_harness(current, changes)
        schedule = _merged(current, changes, model_id, now)
        self._launcher.check_harness(schedule)
        await self._db.read(lambda s: self._launcher.check_price(s, schedule, llm_model))
        schedule.benchmarks = schedule.benchmarks or [self._catalogue.default_benchmark()]
        cron, where = parse(schedule.cron_expression), zone(schedule.timezone)
        schedule.cron_expression = cron.written
        self._runs.check_instance_type(schedule.instance_type)
        await self._db.read(lambda s: _check_baseline(s, schedule))
        panel = None
        if current is None or redraw or _differ(current, schedule, _PANEL_FIELDS):
            panel = await self._new_panel(schedule, now)
        else:
            await self._db.read(lambda s: _check_items(s, schedule))

        def write(session: Session) -> SavedSchedule:
            if model_queries.lock(session, model_id) is None:
                raise NotFound(f"the model {model!r} was deleted just now")
            row = schedule_queries.lock(session, model_id)
            if (row is None) != (current is None) or (row and panel is None and _differ(row, schedule, _PANEL_FIELDS)):
                raise Conflict("the schedule was changed by another request at the same moment; read it, then try again")
            if row is None:
                row = schedule
                row.next_fire_at = next_instant(cron, where, now)
            else:
                if row.paused and not schedule.paused:
                    settle(session, row, FireOutcome.SKIPPED_PAUSED, now, "The schedule was paused.")
                moved = _differ(row, schedule, _WHEN) or row.next_fire_at is None
                if moved:
                    settle(session, row, FireOutcome.SKIPPED_MISFIRE, now, "The schedule was changed before it fired.")
                for name in changes:
                    setattr(row, name, getattr(schedule, name))
                row.benchmarks, row.updated_at = schedule.benchmarks, now
                if moved:
                    row.next_fire_at = next_instant(cron, where, now)
            if panel is not None:
                panel.version = row.panel_version = schedule_queries.last_panel_version(session, model_id) + 1
                session.add(panel)
            session.add(row)
            session.flush()
            return SavedSchedule(row, current is None)

        return await self._db.write(write)

    async def _new_panel(self, schedule: Schedule, now: datetime) -> SchedulePanel:
        if schedule.harness is not None:
            return harness_panel(schedule, schedule.harness, now)
        histories = await self._db.read(lambda s: histories_of(s, schedule))
        return await asyncio.to_thread(new_panel, self._catalogue, schedule, histories, now)

    async def get(self, model: int | str) -> Schedule:
        model_id = (await self._runs.find_model(model)).id or 0
        schedule = await self._db.read(lambda s: schedule_queries.get(s, model_id))
        if schedule is None:
            raise no_schedule(model)
        return schedule

    async def delete(self, model: int | str) -> None:
        """Delete the schedule; its fires and panels stay as history."""
        model_id = (await self.get(model)).model_id

        def remove(session: Session) -> None:
            row = schedule_queries.lock(session, model_id)
            if row is not None:
                session.delete(row)

        await self._db.write(remove)

    async def pause(self, model: int | str, paused: bool) -> Schedule:
        """Pause or resume. Instants that pass during a pause are recorded and do not run later."""
        model_id = (await self.get(model)).model_id
        now = self._clock.now()

        def change(session: Session) -> Schedule:
            row = schedule_queries.lock(session, model_id)
            if row is None:
                raise no_schedule(model)
            if row.paused and not paused:
                settle(session, row, FireOutcome.SKIPPED_PAUSED, now, "The schedule was paused.")
            if row.next_fire_at is None:
                row.next_fire_at = next_instant(parse(row.cron_expression), zone(row.timezone), now)
            if row.paused != paused:
                row.paused, row.updated_at = paused, now
            session.add(row)
            return row

        return await self._db.write(change)

    async def run_now(self, model: int | str, idempotency: Idempotency | None = None) -> str:
        """Run the panel in addition to the plan; the run joins the series like any other."""
        model_id = (await self.get(model)).model_id
        now = self._clock.now()

        def launch(session: Session, row: Schedule) -> dict[str, str]:
            running = schedule_queries.under_way(session, model_id)
            if running is not None and row.overlap == "forbid":
                raise Conflict(f"run {running} of this schedule has not ended; wait for it or cancel it")
            if schedule_queries.fire(session, model_id, now) is not None:
                raise Conflict("the schedule is firing now; look at its runs")
            run_id = self._launcher.start(session, row, now)
            session.add(
                ScheduleFire(
                    model_id=model_id,
                    instant=now,
                    outcome=FireOutcome.FIRED.value,
                    cause="manual",
                    run_id=run_id,
                    panel_version=row.panel_version,
                    recorded_at=now,
                )
            )
            return {"run_id": run_id}

        def start(session: Session) -> str:
            row = schedule_queries.lock(session, model_id)
            if row is None:
                raise no_schedule(model)
            return str(answer_once(session, idempotency, now, lambda: launch(session, row))["run_id"])

        run_id = await self._db.write(start)
        self._wake()
        return run_id

    async def detection_power(self, schedule: Schedule) -> DetectionPower | None:
        """What the schedule can detect, given the model's results on its panel; None if its items are not known yet."""
        return await self._db.read(lambda s: detection_power_of(s, schedule))


def no_schedule(model: int | str) -> NotFound:
    return NotFound(f"the model {model!r} has no schedule; POST /api/schedules creates one")


def _merged(current: Schedule | None, changes: dict[str, Any], model_id: int, now: datetime) -> Schedule:
    values = {} if current is None else {name: getattr(current, name) for name in Schedule.model_fields if name not in _OWN}
    created = now if current is None else current.created_at
    return Schedule(**{**values, **changes, "model_id": model_id, "created_at": created, "updated_at": now})


def _differ(first: Schedule, other: Schedule, names: tuple[str, ...]) -> bool:
    return any(getattr(first, name) != getattr(other, name) for name in names)


def _check_baseline(session: Session, schedule: Schedule) -> None:
    """The run must be comparable with later ones, even if the schedule uses another baseline now."""
    if schedule.baseline_run_id is None:
        if schedule.baseline == BaselineKind.RUN:
            raise Invalid("baseline_run_id: name a completed run of this model, or choose another baseline")
        return
    run = run_queries.get(session, schedule.baseline_run_id)
    kinds = COMPARABLE_KINDS if schedule.harness is None else ("harness",)
    if run is None or run.model_id != schedule.model_id or run.status != "completed" or run.kind not in kinds:
        raise Invalid("baseline_run_id: name a completed run of this model, or choose another baseline")
    if not set(run.benchmarks) & set(schedule.benchmarks):
        actual, needed = ", ".join(run.benchmarks), ", ".join(schedule.benchmarks)
        raise Invalid(
            f"baseline_run_id: that run is on {actual}, the schedule on {needed}; name a run on the same benchmark"
        )
    if run.score is not None and run.score.get("comparable") is False:
        raise Invalid("baseline_run_id: that run is not comparable (cut short, or too many errors); name another one")


def _check_items(session: Session, schedule: Schedule) -> None:
    panel = schedule_queries.panel(session, schedule.model_id, schedule.panel_version)
    if panel is not None:
        specs = [BenchmarkSpec.model_validate(row) for row in panel.benchmarks]
        check_size(item_count(specs, schedule.samples_per_problem))


def detection_power_of(session: Session, schedule: Schedule) -> DetectionPower | None:
    """From the model's results on the panel, or an assumption if there are none. The items of a harness are those of the
    newest run that could be compared; None if there is no such run.
    """
    panel = schedule_queries.panel(session, schedule.model_id, schedule.panel_version)
    looks = schedule_queries.looks(session, schedule.model_id, schedule.panel_version, limit=1)
    parts = {spec["name"]: spec["problem_ids"] for spec in panel.benchmarks} if panel else {}
    problems, samples = panel.problems if panel else schedule.sample_size, schedule.samples_per_problem
    if schedule.harness is not None:
        keys = item_queries.keys(session, looks[0].run_id) if looks and looks[0].run_id else []
        parts = {schedule.harness.name: list(dict.fromkeys(key[1] for key in keys))}
        problems = len(parts[schedule.harness.name])
        if not problems:
            return None
        samples = max(1, round(len(keys) / problems))
    histories: list[Moments] = []
    for name, problem_ids in parts.items():
        moments = schedule_queries.problem_moments(session, schedule.model_id, name, harness=schedule.harness is not None)
        histories += [moments[problem_id] for problem_id in problem_ids if problem_id in moments]
    power = DetectionPower(
        problems,
        samples=samples,
        pool=schedule.baseline_runs if schedule.baseline == BaselineKind.ROLLING else 1,
        alarm_rate=schedule.alarm_rate,
    )
    if observed := spread(histories):
        power = replace(power, spread=observed, assumed=False)
    if looks:
        power = replace(power, look=max(power.look, (looks[0].look or 0) + power.within))
    return power
