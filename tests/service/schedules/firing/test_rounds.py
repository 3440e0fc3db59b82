"""Firing: every due instant has one row, at most one run, whatever the clock and the orchestrators do (F20, F21, I7)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlmodel import Session

from orchestrator.audit import queries as audit_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs import queries as run_queries
from orchestrator.runs.scheduling.leading.lease_queries import LeadershipLost
from orchestrator.schedules.firing import rounds as firing_module
from orchestrator.schedules.tables import Schedule
from runner.contract.harness import HarnessTask, ResultsFormat, ResultsRule
from tests.manual_clock import START
from tests.service.schedules.simulated_schedules import PROBLEMS, ScheduleWorld, add_schedule, every_instant_once

pytestmark = pytest.mark.anyio

MINUTE = 60
HOUR = 3600
DAY = 24 * HOUR
FIRST = START + timedelta(minutes=1)


async def test_on_time_it_fires_once(world: ScheduleWorld) -> None:
    model_id = await world.add()
    _, firing = await world.boot()
    await firing.round()
    assert await world.fires() == [], "nothing is due yet"
    world.clock.advance(MINUTE)
    for _ in range(3):
        await firing.round()
    (fire,) = await world.fires()
    (run,) = await world.runs()
    assert (fire.instant, fire.outcome, fire.run_id, fire.late_s) == (FIRST, "fired", run.id, 0)
    assert (run.trigger_type, run.status, run.items_total, run.not_before) == ("schedule", "pending", 3, None)
    assert run.task.benchmarks[0].problem_ids == PROBLEMS
    assert world.woken == 1
    assert (await world.schedule(model_id)).next_fire_at == FIRST + timedelta(minutes=1)
    (entry,) = await world.db.read(lambda session: audit_queries.page(session, limit=9))
    assert (entry.actor_kind, entry.action, entry.object_id) == ("system", "schedule fired", run.id)


async def test_down_for_three_hours_over_180_minutes(world: ScheduleWorld) -> None:
    model_id = await world.add()
    world.clock.advance(180 * MINUTE)
    _, firing = await world.boot()
    while await firing.round():
        pass
    assert Counter(await world.outcomes()) == {"fired": 1, "coalesced": 60, "skipped_misfire": 119}
    assert (await world.fires())[-1].outcome == "fired"
    await every_instant_once(world, model_id, FIRST)
    (alert,) = await world.alerts()
    assert (alert.kind, alert.data["instants"]) == ("schedule.missed", 119)


async def test_a_run_that_goes_on_is_not_overtaken(world: ScheduleWorld) -> None:
    model_id = await world.add()
    _, firing = await world.boot()
    for _ in range(3):
        world.clock.advance(MINUTE)
        await firing.round()
    await world.end_runs()
    world.clock.advance(MINUTE)
    await firing.round()
    assert await world.outcomes() == ["fired", "skipped_overlap", "skipped_overlap", "fired"]
    await every_instant_once(world, model_id, FIRST)


async def test_a_run_that_cannot_be_paid_is_refused_and_told_and_the_schedule_goes_on(world: ScheduleWorld) -> None:
    """The price was taken away after the schedule was made; later it is entered again."""
    model_id = await world.add(budget_usd=2.0)

    def priced(price: float | None) -> Callable[[Session], None]:
        def change(session: Session) -> None:
            model = session.get(LlmModel, model_id)
            assert model is not None
            model.input_price = model.output_price = price
            session.add(model)

        return change

    await world.db.write(priced(None))
    _, firing = await world.boot()
    world.clock.advance(MINUTE)
    await firing.round()
    (fire,) = await world.fires(model_id)
    assert (fire.outcome, fire.run_id) == ("refused", None)
    assert fire.detail.startswith(
        "The run has a budget of $2, which cannot be enforced: the price of m1 is not known; enter input_price"
    )
    (alert,) = await world.alerts()
    assert alert.kind == "schedule.missed"
    assert "the price of m1 is not known" in alert.title
    assert await world.runs() == []
    await world.db.write(priced(1.0))
    world.clock.advance(MINUTE)
    await firing.round()
    assert await world.outcomes() == ["refused", "fired"]
    await every_instant_once(world, model_id, FIRST)


async def test_overlap_can_be_allowed(world: ScheduleWorld) -> None:
    await world.add(overlap="allow")
    _, firing = await world.boot()
    for _ in range(2):
        world.clock.advance(MINUTE)
        await firing.round()
    assert await world.outcomes() == ["fired", "fired"]


async def test_paused_instants_are_recorded(world: ScheduleWorld) -> None:
    model_id = await world.add(paused=True)
    world.clock.advance(3 * MINUTE)
    _, firing = await world.boot()
    await firing.round()
    assert await world.outcomes() == ["skipped_paused"] * 3
    assert await world.alerts() == []
    await every_instant_once(world, model_id, FIRST)


@pytest.mark.parametrize("jump", [HOUR, -HOUR, DAY, -DAY], ids=["+1h", "-1h", "+1d", "-1d"])
async def test_the_clock_jumps_and_comes_back(world: ScheduleWorld, jump: int) -> None:
    model_id = await world.add(cron_expression="*/10 * * * *")
    _, firing = await world.boot()
    first = START + timedelta(minutes=10)

    async def live(minutes: int) -> None:
        for _ in range(minutes // 5):
            world.clock.advance(5 * MINUTE)
            while await firing.round():
                pass
            await world.end_runs()

    await live(30)
    runs_before = len(await world.runs())
    assert runs_before == 3
    world.clock.advance(jump)
    await live(30)
    middle = len(await world.runs())
    assert middle - runs_before == (3 + 1 if jump > 0 else 0), "one run for what the jump passed over, none twice"
    world.clock.advance(-jump)
    await live(30)
    await every_instant_once(world, model_id, first)
    schedule = await world.schedule(model_id)
    assert schedule.next_fire_at is not None
    world.clock.advance((schedule.next_fire_at - world.clock.now()).total_seconds())
    await live(30)
    assert (await world.fires())[-1].outcome == "fired", "it goes on"
    await every_instant_once(world, model_id, first)


async def test_long_absence_is_recorded_in_pieces(world: ScheduleWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firing_module, "BATCH", 7)
    model_id = await world.add()
    world.clock.advance(30 * MINUTE)
    _, firing = await world.boot()
    rounds = 1
    while await firing.round():
        rounds += 1
    assert rounds == 5
    assert Counter(await world.outcomes()) == {"coalesced": 29, "fired": 1}
    await every_instant_once(world, model_id, FIRST)


async def test_two_orchestrators_on_one_database(world: ScheduleWorld) -> None:
    model_id = await world.add()
    _, firing_a = await world.boot("a")
    b, firing_b = world.orchestrator("b")
    assert not await b.hold()
    world.clock.advance(MINUTE)
    await asyncio.gather(firing_a.round(), firing_b.round(), firing_a.round())
    assert await world.outcomes() == ["fired"]
    # When the leader stands still, the other takes over; the old one comes back and believes it leads
    world.clock.advance(MINUTE)
    await world.end_runs()
    assert await b.hold()
    results = await asyncio.gather(firing_a.round(), firing_b.round(), return_exceptions=True)
    assert isinstance(results[0], LeadershipLost)
    await every_instant_once(world, model_id, FIRST)
    assert await world.outcomes() == ["fired", "fired"]


async def test_catching_up_is_staggered(world: ScheduleWorld) -> None:
    for number in range(4):
        await world.add(f"m{number}", cron_expression="0 * * * *")
    world.clock.advance(90 * MINUTE)
    _, firing = await world.boot()
    await firing.round()
    starts = sorted((run.not_before or world.clock.now()) - world.clock.now() for run in await world.runs())
    assert starts == [timedelta(seconds=5 * number) for number in range(4)]
    due = await world.db.read(lambda s: run_queries.due(s, world.clock.now(), 10))
    assert len(due) == 1


async def test_hundreds_in_the_same_minute(world: ScheduleWorld, dialect: str) -> None:
    count = 200 if dialect == "sqlite" else 100

    def add_all(session: Session) -> None:
        for number in range(count):
            add_schedule(session, START, f"m{number}", cron_expression="0 9 * * *", timezone="Europe/Berlin")

    await world.db.write(add_all)
    world.clock.advance(DAY)
    _, firing = await world.boot()
    while await firing.round():
        pass
    assert len(await world.runs()) == count
    assert len({fire.model_id for fire in await world.fires()}) == count


async def test_one_broken_schedule_does_not_stop_the_others(world: ScheduleWorld) -> None:
    await world.add("broken", panel_version=9)
    healthy = await world.add("healthy")
    world.clock.advance(MINUTE)
    _, firing = await world.boot()
    await firing.round()
    assert await world.outcomes(healthy) == ["fired"]


async def test_a_zone_that_is_gone_pauses(world: ScheduleWorld) -> None:
    model_id = await world.add()

    def break_it(session: Session) -> None:
        schedule = session.get(Schedule, (1, model_id))
        assert schedule is not None
        schedule.timezone = "Mars/Olympus"

    await world.db.write(break_it)
    world.clock.advance(MINUTE)
    _, firing = await world.boot()
    await firing.round()
    schedule = await world.schedule(model_id)
    assert (schedule.paused, schedule.next_fire_at) == (True, None)


async def test_who_does_not_lead_does_nothing(world: ScheduleWorld) -> None:
    await world.add()
    world.clock.advance(MINUTE)
    _, firing = world.orchestrator()
    assert not await firing.round()
    assert await world.fires() == []


async def test_a_harness_whose_image_is_no_longer_allowed_is_refused_and_told(world: ScheduleWorld) -> None:
    rule = ResultsRule(format=ResultsFormat.JSON_LINES, paths=["results.jsonl"])
    task = HarnessTask(name="mine", image="other:1", argv=["true"], results=rule)
    model_id = await world.add(harness=task, sample_size=0, benchmarks=["mine"])
    _, firing = await world.boot()
    world.clock.advance(60)
    await firing.round()
    (fire,) = await world.fires(model_id)
    assert (fire.outcome, fire.run_id) == ("refused", None)
    assert "BENCHYARD_COMMAND_IMAGES" in fire.detail
    assert [alert.kind for alert in await world.alerts()] == ["schedule.missed"]
    assert await world.runs() == []
