"""The dispatcher on the fake engine with a manual clock: launches and their faults, order, capacity, two orchestrators."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from orchestrator.commands.service import command_task
from orchestrator.engines.engine import EngineError
from orchestrator.runs.scheduling.capacity import Capacity
from orchestrator.runs.scheduling.dispatcher import Hold
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.scheduling.leading.lease_queries import LeadershipLost
from runner.contract.commands import CommandTask
from tests.service.runs.crashes import Crash, CrashAt
from tests.service.runs.simulated_scheduler import RunWorld

pytestmark = pytest.mark.anyio


async def test_a_run_goes_through(world: RunWorld) -> None:
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    row = await world.row(run_id)
    assert (row.status, row.reason, row.attempt, row.items_done) == ("completed", None, 1, 2)
    assert row.score is not None
    assert row.score["estimate"] == 1.0
    await world.settle()
    (attempt,) = await world.attempts(run_id)
    assert attempt.exit_code == 0
    assert attempt.token_hash is None
    assert attempt.removed_at is not None
    await world.check()


async def test_at_rest_nothing_is_written(world: RunWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.round()
    with monkeypatch.context() as no_writing:
        no_writing.delattr(Leadership, "write")
        assert await world.dispatcher.round() == 0
    await world.new_run()
    assert await world.dispatcher.round() == 1


async def test_launch_refused(world: RunWorld) -> None:
    """Tried again with backoff, failed after three attempts that finished nothing."""
    world.engine.faults.launch_error = "no space left on device"
    run_id = await world.new_run()
    await world.round()
    row = await world.row(run_id)
    assert (row.status, row.reason, row.attempt) == ("pending", "engine_error", 1)
    assert "no space left" in (row.error_message or "")
    assert row.not_before is not None
    await world.round()
    assert (await world.row(run_id)).attempt == 1, "the backoff is waited for"
    await world.rounds(4)
    assert await world.status(run_id) == ("failed", "engine_error")
    assert (await world.row(run_id)).attempt == 3
    await world.check()


async def test_launch_refused_by_a_disk_that_has_just_filled_up(world: RunWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the run's fault: it waits, says why, and loses no attempt."""

    async def fills_up(_: object) -> None:
        world.hold = Hold("The disk is full.")
        raise EngineError("no space left on device")

    run_id = await world.new_run()
    with monkeypatch.context() as full:
        full.setattr(world.engine, "launch", fills_up)
        await world.rounds(3)
    row = await world.row(run_id)
    assert (row.status, row.attempt, row.reason, row.waiting_for) == ("pending", 0, None, "The disk is full.")
    world.hold = None
    await world.settle()
    assert await world.status(run_id) == ("completed", None)
    assert (await world.row(run_id)).attempt == 1
    await world.check()


async def test_image_missing(world: RunWorld) -> None:
    world.engine.faults.image_missing = True
    run_id = await world.new_run()
    await world.rounds(6)
    assert await world.status(run_id) == ("failed", "image_missing")
    await world.check()


async def test_image_missing_then_built(world: RunWorld) -> None:
    world.engine.faults.image_missing = True
    run_id = await world.new_run()
    await world.round()
    world.engine.faults.image_missing = False
    await world.settle()
    assert await world.status(run_id) == ("completed", None)
    await world.check()


async def test_name_taken_by_a_foreign_container(world: RunWorld) -> None:
    run_id = await world.new_run()
    foreign = world.engine.occupy(f"benchyard-run-{run_id}-a1")
    await world.round()
    assert await world.status(run_id) == ("pending", "name_taken")
    foreign.waits = True  # type: ignore[attr-defined]
    await world.rounds(2)
    await world.quiet()
    assert await world.status(run_id) == ("completed", None)
    assert foreign.state.value == "running", "the foreign container was touched"
    del world.engine.containers[foreign.name]
    foreign.end(0, world.clock.now())


async def test_name_taken_while_the_launch_was_interrupted(world: RunWorld) -> None:
    """The orchestrator died before the launch; a container of somebody else has the name. It is not our evidence."""
    run_id = await world.new_run()
    world.boot(CrashAt(5))  # the row is taken, the engine is not asked yet
    with pytest.raises(Crash):
        await world.rounds(3)
    assert await world.status(run_id) == ("starting", None)
    foreign = world.engine.occupy(f"benchyard-run-{run_id}-a1")
    world.boot()
    await world.round(5)
    assert await world.status(run_id) == ("pending", "name_taken")
    await world.rounds(2)
    assert (await world.row(run_id)).attempt == 2
    assert foreign.state.value == "running"
    del world.engine.containers[foreign.name]
    foreign.end(0, world.clock.now())


async def test_launch_unanswered_is_adopted(world: RunWorld) -> None:
    world.engine.faults.launch_answer_lost = True
    run_id = await world.new_run()
    await world.round()
    await world.settle()
    assert await world.status(run_id) == ("completed", None)
    assert len(world.engine.containers) == 0
    await world.check()


async def test_created_but_never_started(world: RunWorld) -> None:
    world.engine.faults.start_lost = True
    run_id = await world.new_run()
    await world.round()
    world.engine.faults.start_lost = False
    await world.round(5)
    assert (await world.attempts(run_id))[0].reason == "engine_error"
    await world.settle()
    assert await world.status(run_id) == ("completed", None)
    await world.check()


async def test_two_orchestrators(world: RunWorld) -> None:
    """F4: the leader is stopped, another takes over, the first is continued: the old epoch writes nothing."""
    world.engine.behaviour = world.does_one_and_waits
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    old = (world.leadership, world.reconciler, world.dispatcher)
    world.clock.advance(20)
    world.boot(holder="o2")
    await world.round()
    second = await world.new_run()
    before = await world.row(run_id)
    # When the old one goes on in the middle of its round
    world.engine.crash(f"benchyard-run-{run_id}-a1")
    with pytest.raises(LeadershipLost):
        await old[1].round()
    with pytest.raises(LeadershipLost):
        await old[2].round()
    # Then it has changed nothing, and its next round knows
    assert await world.row(run_id) == before
    assert (await world.row(second)).status == "pending"
    assert not await old[0].hold()
    world.engine.behaviour = world.completes
    await world.settle()
    await world.check()


class TestCapacity:
    async def test_fifty_runs_four_at_once(self, world: RunWorld) -> None:
        ids = [await world.new_run() for _ in range(50)]
        await world.settle(seconds=1, limit=200)
        assert {await world.status(run_id) for run_id in ids} == {("completed", None)}
        assert world.engine.most_live <= 4
        assert len(world.engine.launched) == 50, "none twice"
        await world.check()

    async def test_a_container_that_lingers_still_takes_its_place(self, world: RunWorld) -> None:
        """The run is over when its results are stored, the room is free when its container has ended."""

        async def lingers(container):  # type: ignore[no-untyped-def]
            await world.completes(container)
            return await world.never_claims(container)

        world.engine.behaviour = lingers
        for _ in range(6):
            await world.new_run()
        await world.round()
        await world.quiet()
        await world.rounds(2)
        assert world.engine.most_live == 4
        await world.settle()
        assert world.engine.most_live == 4
        await world.check()

    async def test_a_small_run_passes_a_large_one_that_must_wait(self, world: RunWorld) -> None:
        world.capacity = Capacity(4, 4.0, 9 << 30)
        world.engine.behaviour = world.claims_and_waits
        first = await world.new_run(instance_type="large")
        second = await world.new_run(instance_type="large")
        await world.round()
        await world.quiet()
        assert [(await world.row(run_id)).status for run_id in (first, second)] == ["running", "pending"]

    async def test_priority_then_age(self, world: RunWorld) -> None:
        world.capacity = Capacity(1, 8.0, 16 << 30)
        ids = [await world.new_run(priority=priority) for priority in (0, 5, 5)]
        await world.settle(seconds=1)
        order = [name.removeprefix("benchyard-run-").removesuffix("-a1") for name in world.engine.launched]
        assert order[0] in ids[1:]
        assert order[-1] == ids[0]

    @pytest.mark.parametrize("why", ["unknown capacity", "hold"])
    async def test_nothing_starts(self, world: RunWorld, why: str) -> None:
        if why == "hold":
            world.hold = Hold("The disk is full.")
        else:
            world.capacity = None
        run_id = await world.new_run()
        await world.rounds(2)
        assert await world.status(run_id) == ("pending", None)

    async def test_every_live_attempt_has_its_own_uids(self, world: RunWorld) -> None:
        world.engine.behaviour = world.claims_and_waits
        ids = [await world.new_run() for _ in range(4)]
        await world.round()
        await world.quiet()
        bases = {(await world.attempts(run_id))[0].sandbox_uid_base for run_id in ids}
        assert len(bases) == 4


async def test_an_image_that_took_long_to_fetch_leaves_time_for_the_start(world: RunWorld) -> None:
    world.engine.behaviour = world.never_claims
    world.engine.faults.launch_delay_s = 0.05
    of_command = command_task(CommandTask(image="team/image:1", argv=["true"], name="x", repeats=1))
    run_id = await world.new_run(kind="command", task=of_command, instance_type="basic")
    await world.leadership.hold()
    await world.dispatcher.round()
    first = (await world.row(run_id)).start_deadline
    assert first is not None
    world.clock.advance(400)
    await world.launches()
    row = await world.row(run_id)
    assert (row.status, row.attempt) == ("starting", 1)
    assert row.start_deadline is not None
    assert row.start_deadline - first == timedelta(seconds=400)
    await world.round(5)
    assert (await world.status(run_id))[0] == "starting", "it is not taken for one that does not come up"


async def test_one_look_is_enough_for_one_run(world: RunWorld) -> None:
    await world.leadership.hold()
    looks = []
    write = world.leadership.write

    async def counting(work: Any) -> Any:
        looks.append(work)
        return await write(work)

    world.leadership.write = counting  # type: ignore[method-assign]
    await world.new_run()
    assert (await world.dispatcher.round(), len(looks)) == (1, 1)
    await world.launches()
    for _ in range(2):
        await world.new_run()
    looks.clear()
    assert (await world.dispatcher.round(), len(looks)) == (2, 2)
    await world.launches()
