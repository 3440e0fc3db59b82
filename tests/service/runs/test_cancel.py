"""F19: cancel at every state and moment ends in cancelled or completed, never both, and no container is left."""

from __future__ import annotations

import random

import pytest

from orchestrator.commands.service import command_task
from orchestrator.runs.live import queries as event_queries
from runner.contract.commands import CommandTask
from tests.service.runs.simulated_scheduler import RunWorld

pytestmark = pytest.mark.anyio


async def ended_once(world: RunWorld, run_id: str) -> str:
    log = await world.db.read(lambda s: event_queries.transitions(s, run_id))
    ends = [row.data["status"] for row in log if row.data["status"] in ("completed", "cancelled", "failed")]
    assert len(ends) == 1
    return str(ends[0])


async def test_pending_at_once(world: RunWorld) -> None:
    run_id = await world.new_run()
    await world.cancel(run_id)
    assert await world.status(run_id) == ("cancelled", "cancelled_by_user")
    await world.round()
    assert not world.engine.launched


async def test_pending_between_attempts(world: RunWorld) -> None:
    world.engine.faults.launch_error = "no"
    run_id = await world.new_run()
    await world.round()
    await world.cancel(run_id)
    await world.rounds(3)
    assert await world.status(run_id) == ("cancelled", "cancelled_by_user")
    await world.check()


async def test_an_image_that_is_being_fetched_is_given_up(world: RunWorld) -> None:
    world.engine.faults.launch_delay_s = 3600
    of_command = command_task(CommandTask(image="team/image:1", argv=["true"], name="x", repeats=1))
    run_id = await world.new_run(kind="command", task=of_command, instance_type="basic")
    await world.leadership.hold()
    await world.dispatcher.round()
    await world.reconciler.round()
    assert (await world.row(run_id)).status == "starting"
    await world.cancel(run_id)
    await world.reconciler.round()
    assert await world.status(run_id) == ("cancelled", "cancelled_by_user")
    await world.check()


@pytest.mark.parametrize("behaviour", ["never_claims", "claims_and_waits", "does_one_and_waits"])
async def test_live_after_the_stop_is_confirmed(world: RunWorld, behaviour: str) -> None:
    world.engine.behaviour = getattr(world, behaviour)
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    await world.cancel(run_id)
    assert (await world.row(run_id)).status in ("starting", "running"), "not before it has stopped"
    await world.round()
    assert await world.status(run_id) == ("cancelled", "cancelled_by_user")
    assert not world.engine.containers
    await world.check()


@pytest.mark.parametrize("exit_code", [0, 1, 137])
async def test_a_runner_that_goes_by_itself_once_it_hears_of_it(world: RunWorld, exit_code: int) -> None:
    world.engine.behaviour = world.claims_and_waits
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    await world.cancel(run_id)
    world.engine.crash(f"benchyard-run-{run_id}-a1", exit_code)
    await world.round()
    assert await world.status(run_id) == ("cancelled", "cancelled_by_user")
    (attempt,) = await world.attempts(run_id)
    assert (attempt.reason, attempt.detail, attempt.exit_code) == (
        "cancelled_by_user",
        "The run was cancelled by a user.",
        exit_code,
    )


async def test_paused(world: RunWorld) -> None:
    world.engine.behaviour = world.claims_and_waits
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    world.engine.pause(f"benchyard-run-{run_id}-a1")
    await world.cancel(run_id)
    await world.round()
    assert await world.status(run_id) == ("cancelled", "cancelled_by_user")
    await world.check()


async def test_engine_unreachable(world: RunWorld) -> None:
    world.engine.behaviour = world.claims_and_waits
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    await world.cancel(run_id)
    world.engine.faults.unreachable_calls = 1
    with pytest.raises(Exception, match="does not answer"):
        await world.round()
    assert (await world.row(run_id)).status == "running"
    await world.round()
    assert await world.status(run_id) == ("cancelled", "cancelled_by_user")


@pytest.mark.parametrize("seed", range(5))
async def test_at_any_moment(world: RunWorld, seed: int) -> None:
    rng = random.Random(seed)
    ids = [await world.new_run(items=rng.randint(1, 6)) for _ in range(4)]
    world.engine.behaviour = rng.choice([world.completes, world.does_one_and_waits, world.never_claims])
    open_ids = list(ids)
    while open_ids:
        if rng.random() < 0.5:
            await world.cancel(open_ids.pop(rng.randrange(len(open_ids))))
        if rng.random() < 0.7:
            await world.round(rng.choice([0, 1, 5]))
    world.engine.behaviour = world.completes
    await world.settle()
    assert {await ended_once(world, run_id) for run_id in ids} <= {"cancelled", "completed"}
    await world.check()
