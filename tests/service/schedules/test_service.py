"""The service on both databases: what is settled before a change, panels on purpose, history that stays."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import Session, col, select

from orchestrator.datasets.catalogue import Catalogue
from orchestrator.errors import Conflict, NotFound
from orchestrator.leaderboard.queries import completed_runs
from orchestrator.runs.service import RunService
from orchestrator.runs.tables import ContainerRun
from orchestrator.schedules import queries as schedule_queries
from orchestrator.schedules.firing.launch import Launcher
from orchestrator.schedules.service import ScheduleService
from orchestrator.settings import Settings
from tests.manual_clock import START
from tests.rows import a_model, an_item
from tests.service.schedules.simulated_schedules import ScheduleWorld

pytestmark = pytest.mark.anyio
GIVEN = {"cron_expression": "*/10 * * * *", "sample_size": 6, "benchmarks": ["sample"]}


@pytest.fixture
async def service(world: ScheduleWorld, data_template: Path, tmp_path: Path) -> ScheduleService:
    data = tmp_path / "data"
    shutil.copytree(data_template, data)
    settings, catalogue = Settings(data=data), Catalogue(data)
    await world.db.write(lambda s: s.add(a_model("m")))
    nothing: Callable[[], Any] = lambda: None  # noqa: E731
    runs = RunService(world.db, catalogue, settings, world.clock, capacity=nothing, wake=nothing)
    launcher = Launcher(settings, catalogue, engine_name="fake")
    return ScheduleService(world.db, catalogue, runs, world.clock, launcher, wake=nothing)


async def test_what_is_due_is_settled_before_a_change(world: ScheduleWorld, service: ScheduleService) -> None:
    first = await service.save("m", GIVEN)
    assert first.created
    world.clock.advance(25 * 60)
    changed = await service.save("m", {"cron_expression": "0 9 * * *", "sample_size": 6})
    assert not changed.created
    assert changed.schedule.next_fire_at == START + timedelta(days=1)
    assert await world.outcomes() == ["skipped_misfire", "skipped_misfire"]
    assert [fire.detail for fire in await world.fires()] == ["The schedule was changed before it fired."] * 2


async def test_going_on_makes_up_for_nothing(world: ScheduleWorld, service: ScheduleService) -> None:
    await service.save("m", GIVEN)
    await service.pause("m", True)
    world.clock.advance(25 * 60)
    going = await service.pause("m", False)
    assert going.next_fire_at == START + timedelta(minutes=30)
    assert await world.outcomes() == ["skipped_paused"] * 2
    _, firing = await world.boot()
    await firing.round()
    assert await world.runs() == []
    # the same by saving
    await service.pause("m", True)
    world.clock.advance(10 * 60)
    await service.save("m", {**GIVEN, "paused": False})
    assert await world.outcomes() == ["skipped_paused"] * 3


async def test_run_now_is_one_at_a_time(world: ScheduleWorld, service: ScheduleService) -> None:
    await service.save("m", GIVEN)
    run_id = await service.run_now("m")
    with pytest.raises(Conflict, match=run_id):
        await service.run_now("m")
    await world.end_runs()
    world.clock.advance(1)
    assert await service.run_now("m") != run_id
    assert await world.outcomes() == ["fired", "fired"]


async def test_an_informative_panel_goes_by_the_results(world: ScheduleWorld, service: ScheduleService) -> None:
    saved = await service.save("m", GIVEN)
    model_id = saved.schedule.model_id
    before = await world.db.read(lambda s: schedule_queries.panel(s, model_id, 1))
    assert before is not None
    ids = before.benchmarks[0]["problem_ids"]
    for passing in (2, 1, 1):
        await service.run_now("m")

        def end(session: Session, passing: int = passing) -> None:
            run = session.exec(select(ContainerRun).order_by(col(ContainerRun.created_at).desc()).limit(1)).one()
            run.status, run.score = "completed", {"comparable": True}
            session.add(run)
            for position, problem_id in enumerate(ids):
                outcome = "passed" if position < passing else "wrong_answer"
                session.add(an_item(run.id, problem_id, position=position, outcome=outcome))

        await world.db.write(end)
        world.clock.advance(60)
    tallies = await world.db.read(lambda s: schedule_queries.problem_tallies(s, model_id, "sample"))
    assert [tallies[problem_id] for problem_id in ids] == [(3, 3), (3, 1), (3, 0), (3, 0), (3, 0), (3, 0)]
    power = await service.detection_power(saved.schedule)
    assert (power.assumed, power.spread) == (False, pytest.approx(1 / 3 / 6))
    redrawn = await service.save("m", {**GIVEN, "draw": "informative"})
    assert redrawn.schedule.panel_version == 2
    panel = await world.db.read(lambda s: schedule_queries.panel(s, model_id, 2))
    assert panel is not None
    chosen = panel.benchmarks[0]["problem_ids"]
    assert chosen[0] == ids[1], "what varies comes first"
    assert not set(chosen) & {ids[0], *ids[2:]}
    assert "1 of 1 solved sometimes" in panel.how
    newest, *_ = await world.db.read(lambda s: completed_runs(s, "sample"))
    assert (newest.model_id, newest.id) == (model_id, (await world.fires())[-1].run_id)
    assert await world.db.read(lambda s: completed_runs(s, "other")) == []


async def test_deleted_and_made_again(world: ScheduleWorld, service: ScheduleService) -> None:
    await service.save("m", GIVEN)
    _, firing = await world.boot()
    world.clock.advance(10 * 60)
    await firing.round()
    await service.delete("m")
    with pytest.raises(NotFound, match="no schedule"):
        await service.get("m")
    # When the clock is set back and the schedule is made again, the instant it used is not used twice
    world.clock.advance(-5 * 60)
    again = await service.save("m", GIVEN)
    assert (again.created, again.schedule.panel_version) == (True, 2)
    world.clock.advance(5 * 60)
    await world.end_runs()
    await firing.round()
    assert await world.outcomes() == ["fired"]
    assert len(await world.runs()) == 1
