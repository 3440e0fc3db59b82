"""The time of day is set while runs run: nothing ends for it, and what a deadline means stays the same."""

from __future__ import annotations

from datetime import timedelta

import pytest

from orchestrator.runs.scheduling.clock_steps import ClockSteps
from tests.manual_clock import START, ManualClock
from tests.service.runs.simulated_scheduler import RunWorld

STEPS = [timedelta(days=1), timedelta(days=-1), timedelta(hours=1), timedelta(hours=-1), timedelta(days=400)]


def test_passing_time_is_no_step() -> None:
    clock = ManualClock()
    steps = ClockSteps(clock)
    for seconds in (0.0, 5.0, 3600.0, 86_400.0):
        clock.advance(seconds)
        assert steps.look() is None
    clock.step(timedelta(seconds=2))
    assert steps.look() is None, "drift"


@pytest.mark.parametrize("by", STEPS, ids=str)
def test_a_step_moves_what_was_stored_before_it(by: timedelta) -> None:
    clock = ManualClock()
    steps = ClockSteps(clock)
    clock.advance(3)
    before = clock.now()
    clock.step(by)
    clock.advance(2)
    after = clock.now()
    step = steps.look()
    assert step is not None
    assert step.by == by
    assert step.moved(before) == before + by
    assert step.moved(START - timedelta(hours=5)) == START - timedelta(hours=5) + by
    assert step.moved(after) == after, "it was stored by the new clock"
    assert step.moved(None) is None
    assert steps.look() is None


@pytest.mark.anyio
@pytest.mark.parametrize("by", STEPS, ids=str)
async def test_running_and_waiting_runs_survive_a_step(world: RunWorld, by: timedelta) -> None:
    world.engine.behaviour = world.claims_and_waits
    run_id = await world.new_run(deadline_s=600)
    await world.round()
    await world.quiet()
    await world.round(5)
    world.clock.step(by)
    await world.rounds(3, 5)
    assert await world.status(run_id) == ("running", None)
    assert (await world.row(run_id)).attempt == 1
    started = (await world.row(run_id)).started_at
    assert started is not None
    await world.cancel(run_id)
    await world.settle()
    await world.check()
    assert timedelta(0) <= world.clock.now() - started < timedelta(minutes=2), "what has passed is what really passed"


@pytest.mark.anyio
@pytest.mark.parametrize("by", STEPS[:2], ids=str)
async def test_a_deadline_still_holds_after_a_step(world: RunWorld, by: timedelta) -> None:
    world.engine.behaviour = world.claims_and_waits
    run_id = await world.new_run(deadline_s=600)
    await world.round()
    await world.quiet()
    world.clock.step(by)
    await world.round(5)
    attempt, seq = (await world.attempts(run_id))[0], 0
    while (await world.row(run_id)).status == "running" and seq < 200:
        seq += 1
        await world.post(attempt, {"type": "heartbeat", "seq": seq})
        await world.round(5)
    assert seq > 100, "not before its time"
    await world.rounds(2)
    assert (await world.row(run_id)).reason == "deadline"
    await world.settle()
    await world.check()
