"""Queues the run of a schedule, with its panel and limits, in the caller's transaction."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session

from orchestrator.commands.service import check_image
from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.errors import PackDamaged, UnknownBenchmark
from orchestrator.db.workspaces import acting_in
from orchestrator.errors import NotFound
from orchestrator.harnesses.service import harness_task
from orchestrator.models.tables import LlmModel
from orchestrator.runs.queueing.drafts import Benchmark, BenchmarkTask, Draft, Harness, PlannedBenchmark
from orchestrator.runs.queueing.queue import check_price_of_schedule, enqueue
from orchestrator.schedules import queries as schedule_queries
from orchestrator.schedules.tables import Schedule, SchedulePanel
from orchestrator.settings import Settings

TRIGGER = "schedule"


class Launcher:
    def __init__(self, settings: Settings, catalogue: Catalogue, *, engine_name: str) -> None:
        self._settings = settings
        self._catalogue = catalogue
        self._engine_name = engine_name

    def start(self, session: Session, schedule: Schedule, now: datetime, delay: timedelta = timedelta()) -> str:
        """Queue a run of the schedule's current panel, which starts after `delay` at the earliest; returns the run's id."""
        panel = schedule_queries.panel(session, schedule.model_id, schedule.panel_version)
        if panel is None:
            raise NotFound(f"the schedule of model {schedule.model_id} no longer has a panel")
        self.check_harness(schedule)
        actor = acting_in(session)
        fields = {
            "model_id": schedule.model_id,
            "instance_type": self._instance_type(schedule.instance_type),
            "deadline_s": self._settings.default_deadline_s,
            "concurrency": schedule.concurrency,
            "priority": schedule.priority,
            "budget_usd": schedule.budget_usd,
            "trigger_type": TRIGGER,
            "user_id": actor.user_id if actor and actor.user_id else schedule.user_id,
            "not_before": now + delay if delay else None,
        }
        draft = self._draft(schedule, panel, fields)
        return enqueue(session, draft, now=now, daily_budget_usd=self._settings.daily_budget_usd)

    def _draft(self, schedule: Schedule, panel: SchedulePanel, fields: dict[str, Any]) -> Draft:
        if schedule.harness is not None:
            return Harness(task=harness_task(schedule.harness), **fields)
        parts = [self._with_current_digest(PlannedBenchmark.model_validate(row)) for row in panel.benchmarks]
        task = BenchmarkTask(benchmarks=parts)
        fields |= {"samples_per_problem": schedule.samples_per_problem, "batch": schedule.batch}
        return Benchmark(task=task, seed=panel.seed, **fields)

    def check_harness(self, schedule: Schedule) -> None:
        """Raises `ImageRefused` if this service would never start the image of the schedule's harness."""
        if schedule.harness is not None:
            check_image(schedule.harness.image, None, self._settings, self._engine_name)

    def check_price(self, session: Session, schedule: Schedule, model: LlmModel) -> None:
        """Raises `PriceUnknown` if no run of the schedule could be created."""
        check_price_of_schedule(session, model, schedule.budget_usd, schedule.user_id, self._settings.daily_budget_usd)

    def _with_current_digest(self, spec: PlannedBenchmark) -> PlannedBenchmark:
        """The same problems, with the digest of the current pack: a run names the pack that it uses."""
        try:
            info = self._catalogue.get(spec.name)
            return spec.model_copy(update={"pack_digest": info.pack_digest, "rules": info.rules})
        except (UnknownBenchmark, PackDamaged):
            return spec  # the run will report the problem

    def _instance_type(self, name: str | None) -> str:
        """The schedule's instance type, unless it was removed from the settings."""
        return name if name in self._settings.instance_types else self._settings.default_instance_type
