"""A world of schedules on a real database: leaders that tick, a clock that jumps, and rows to look at afterwards."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlmodel import Session, col, select

from orchestrator.alerts.tables import Alert
from orchestrator.datasets.catalogue import Catalogue
from orchestrator.db.session import Database
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.tables import ContainerRun
from orchestrator.schedules.firing.cron import parse
from orchestrator.schedules.firing.instants import next_instant, zone
from orchestrator.schedules.firing.launch import Launcher
from orchestrator.schedules.firing.rounds import Firing
from orchestrator.schedules.tables import Schedule, ScheduleFire, SchedulePanel
from orchestrator.settings import Settings
from tests.manual_clock import ManualClock
from tests.rows import a_model

PROBLEMS = ["a", "b", "c"]
SPEC = {"name": "nowhere", "adapter": "livecodebench", "pack_digest": "d", "problem_ids": PROBLEMS}


def add_schedule(session: Session, now: datetime, slug: str = "m1", **changed: Any) -> int:
    """A model with a schedule and a panel of three problems."""
    model = a_model(slug)
    session.add(model)
    session.flush()
    assert model.id is not None
    values: dict[str, Any] = {"cron_expression": "* * * * *", "sample_size": 3, "benchmarks": ["nowhere"], **changed}
    schedule = Schedule(model_id=model.id, created_at=now, updated_at=now, **values)
    schedule.next_fire_at = next_instant(parse(schedule.cron_expression), zone(schedule.timezone), now)
    session.add(schedule)
    session.add(
        SchedulePanel(
            model_id=model.id, version=1, seed=0, draw="all", how="", benchmarks=[SPEC], problems=3, created_at=now
        )
    )
    return model.id


def a_launcher(tmp_path: Path) -> Launcher:
    return Launcher(Settings(data=tmp_path), Catalogue(tmp_path), engine_name="fake")


class ScheduleWorld:
    def __init__(self, db: Database, clock: ManualClock, tmp_path: Path) -> None:
        self.db = db
        self.clock = clock
        self.launcher = a_launcher(tmp_path)
        self.woken = 0

    def _wake(self) -> None:
        self.woken += 1

    def orchestrator(self, name: str = "a") -> tuple[Leadership, Firing]:
        leadership = Leadership(self.db, self.clock, name, 15)
        return leadership, Firing(self.db, leadership, self.clock, self.launcher, wake=self._wake)

    async def boot(self, name: str = "a") -> tuple[Leadership, Firing]:
        """An orchestrator that leads."""
        leadership, firing = self.orchestrator(name)
        assert await leadership.hold()
        return leadership, firing

    async def add(self, slug: str = "m1", **changed: Any) -> int:
        return await self.db.write(lambda s: add_schedule(s, self.clock.now(), slug, **changed))

    async def fires(self, model_id: int | None = None) -> list[ScheduleFire]:
        def read(session: Session) -> list[ScheduleFire]:
            query = select(ScheduleFire).order_by(col(ScheduleFire.model_id), col(ScheduleFire.instant))
            if model_id is not None:
                query = query.where(ScheduleFire.model_id == model_id)
            return list(session.exec(query).all())

        return await self.db.read(read)

    async def outcomes(self, model_id: int | None = None) -> list[str]:
        return [fire.outcome for fire in await self.fires(model_id)]

    async def runs(self) -> list[ContainerRun]:
        return await self.db.read(lambda s: list(s.exec(select(ContainerRun).order_by(col(ContainerRun.id))).all()))

    async def alerts(self) -> list[Alert]:
        return await self.db.read(lambda s: list(s.exec(select(Alert).order_by(col(Alert.id))).all()))

    async def schedule(self, model_id: int) -> Schedule:
        def read(session: Session) -> Schedule:
            found = session.get(Schedule, (1, model_id))
            assert found is not None
            return found

        return await self.db.read(read)

    async def end_runs(self, status: str = "completed") -> None:
        def end(session: Session) -> None:
            for run in session.exec(select(ContainerRun)).all():
                run.status = status
                session.add(run)

        await self.db.write(end)


async def every_instant_once(world: ScheduleWorld, model_id: int, first: datetime) -> None:
    """I7: the rows are exactly the instants from `first` up to the next one, and no run has two."""
    fires = await world.fires(model_id)
    schedule = await world.schedule(model_id)
    expected = []
    cron, where = parse(schedule.cron_expression), zone(schedule.timezone)
    at = next_instant(cron, where, first - timedelta(seconds=1))
    while schedule.next_fire_at is not None and at < schedule.next_fire_at:
        expected.append(at)
        at = next_instant(cron, where, at)
    assert [fire.instant for fire in fires] == expected
    run_ids = [fire.run_id for fire in fires if fire.run_id]
    assert len(run_ids) == len(set(run_ids)) == sum(fire.outcome == "fired" for fire in fires)
    assert {run.id for run in await world.runs() if run.model_id == model_id} == set(run_ids)
