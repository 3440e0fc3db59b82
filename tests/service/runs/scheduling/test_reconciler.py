"""What the reconciler makes of every fault of a started run, on the fake engine with a manual clock."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from orchestrator.engines.engine import ContainerFacts, ContainerState, EngineUnreachable
from tests.service.runs.crashes import Crash, CrashAt
from tests.service.runs.simulated_scheduler import RunWorld

pytestmark = pytest.mark.anyio


async def test_engine_unreachable_means_no_transition(world: RunWorld) -> None:
    world.engine.behaviour = world.claims_and_waits
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    world.engine.faults.unreachable = True
    for _ in range(10):  # far longer than any lease
        with pytest.raises(EngineUnreachable):
            await world.round(14)
    assert await world.status(run_id) == ("running", None)
    # When it answers again, leases begin anew: the silence was ours
    world.engine.faults.unreachable = False
    await world.round(5)
    assert await world.status(run_id) == ("running", None)


async def test_a_container_that_started_after_it_was_listed_is_left_alone(world: RunWorld) -> None:
    world.engine.behaviour = world.never_claims
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    listed = world.engine.list

    async def listed_before_the_start() -> list[ContainerFacts]:
        return [replace(fact, state=ContainerState.CREATED) for fact in await listed()]

    world.engine.list = listed_before_the_start  # type: ignore[method-assign]
    await world.round(1)
    assert await world.status(run_id) == ("starting", None)


async def test_start_timeout(world: RunWorld) -> None:
    world.engine.behaviour = world.never_claims
    run_id = await world.new_run()
    await world.round()
    await world.rounds(8, seconds=14)  # no step is so long that it would pass for a stall of our own
    assert await world.status(run_id) == ("starting", None)
    await world.rounds(1, seconds=14)
    row = await world.row(run_id)
    assert (row.status, row.reason) == ("pending", "start_timeout")
    world.engine.behaviour = world.completes
    await world.settle()
    await world.check()


async def test_container_gone(world: RunWorld) -> None:
    world.engine.behaviour = world.does_one_and_waits
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    world.engine.vanish(f"benchyard-run-{run_id}-a1")
    await world.round(5)
    row = await world.row(run_id)
    assert (row.status, row.reason, row.items_done, row.attempts_without_progress) == ("pending", "container_gone", 1, 0)
    world.engine.behaviour = world.completes
    await world.settle()
    row = await world.row(run_id)
    assert (row.status, row.attempt, row.items_done) == ("completed", 2, 2)
    await world.check()


async def test_paused_is_suspected_then_killed_then_tried_again(world: RunWorld) -> None:
    world.engine.behaviour = world.does_one_and_waits
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    world.engine.pause(f"benchyard-run-{run_id}-a1")
    await world.rounds(5, seconds=12)  # 60 s: lease and suspicion
    assert (await world.row(run_id)).status == "running"
    world.engine.behaviour = world.completes
    await world.round(5)
    row = await world.row(run_id)
    first = (await world.attempts(run_id))[0]
    assert (first.reason, first.exit_code) == ("heartbeat_lost", 137)
    assert "paused" in (first.detail or "")
    assert row.attempt in (1, 2)
    await world.settle()
    assert (await world.row(run_id)).status == "completed"
    await world.check()


async def test_a_kill_that_does_not_work_ends_nothing(world: RunWorld) -> None:
    """Only what the engine confirms counts: no second container beside one that may still live."""
    world.engine.behaviour = world.claims_and_waits
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    world.engine.faults.kill_lost = True
    await world.rounds(5, seconds=13)
    assert (await world.row(run_id)).status == "running"
    world.engine.faults.kill_lost = False
    world.engine.behaviour = world.completes
    await world.settle()
    assert (await world.row(run_id)).status == "completed"
    await world.check()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        pytest.param({"exit_at_once": 0}, "protocol", id="exit 0 without completing"),
        pytest.param({"exit_at_once": 2}, "runner_error", id="exit 2"),
        pytest.param({"exit_at_once": 137}, "container_gone", id="killed from outside"),
        pytest.param({"out_of_memory": True}, "out_of_memory", id="out of memory"),
        pytest.param({"vanishes": True}, "container_gone", id="gone at once"),
    ],
)
async def test_an_end_before_any_result(world: RunWorld, fault: dict[str, object], reason: str) -> None:
    for name, value in fault.items():
        setattr(world.engine.faults, name, value)
    run_id = await world.new_run()
    await world.settle()
    row = await world.row(run_id)
    assert (row.status, row.reason, row.attempt) == ("failed", reason, 3)
    assert [attempt.reason for attempt in await world.attempts(run_id)] == [reason] * 3
    await world.check()


async def test_deadline(world: RunWorld) -> None:
    """Hangs with heartbeats: the deadline ends it, and another attempt would meet the same end."""
    world.engine.behaviour = world.does_one_and_waits
    run_id = await world.new_run(deadline_s=100)
    await world.round()
    await world.quiet()
    (attempt,) = await world.attempts(run_id)
    for number in range(9):
        await world.post(attempt, {"type": "heartbeat", "seq": number + 2})
        await world.round(12)
        if (await world.row(run_id)).status != "running":
            break
    row = await world.row(run_id)
    assert (row.status, row.reason, row.attempt) == ("failed", "deadline", 1)
    assert row.score is not None
    assert row.score["comparable"] is False
    await world.check()


async def test_progress_resets_the_count_of_attempts_without_progress(world: RunWorld) -> None:
    world.engine.behaviour = world.does_one_and_waits
    run_id = await world.new_run(items=5)
    for attempt in range(1, 5):
        await world.round(5)
        await world.quiet()
        world.engine.crash(f"benchyard-run-{run_id}-a{attempt}")
        await world.round(5)
    row = await world.row(run_id)
    assert (row.status, row.items_done) == ("pending", 4)
    world.engine.behaviour = world.completes
    await world.settle()
    assert (await world.row(run_id)).status == "completed"
    await world.check()


async def test_remove_refused_is_tried_again(world: RunWorld) -> None:
    world.engine.faults.remove_error = "device busy"
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    with pytest.raises(Exception, match="device busy"):
        await world.round(5)
    assert (await world.row(run_id)).status == "completed"
    world.engine.faults.remove_error = None
    await world.settle()
    await world.check()


async def test_a_finished_runner_that_does_not_go_is_killed(world: RunWorld) -> None:
    async def lingers(container):  # type: ignore[no-untyped-def]
        await world.completes(container)
        return await world.never_claims(container)

    world.engine.behaviour = lingers
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    await world.rounds(2)
    assert len(world.engine.containers) == 1, "it may take a moment to exit"
    await world.rounds(2)
    assert not world.engine.containers
    assert await world.status(run_id) == ("completed", None)
    await world.check()


async def test_orphans_are_swept_and_only_ours(world: RunWorld) -> None:
    labels = {"benchyard.instance": "fake", "benchyard.run": "unknown", "benchyard.attempt": "1"}
    world.engine.occupy("orphan", labels)
    foreign = world.engine.occupy("foreign", {**labels, "benchyard.instance": "somebody else"})
    await world.round()
    assert [*world.engine.containers] == ["foreign"]
    foreign.end(0, world.clock.now())


async def test_our_own_stall_extends_every_lease(world: RunWorld) -> None:
    """F3: SIGSTOP of the orchestrator for a minute and more is no silence of the runners."""
    world.engine.behaviour = world.does_one_and_waits
    ids = [await world.new_run() for _ in range(3)]
    await world.round()
    await world.quiet()
    await world.round(300)
    assert [await world.status(run_id) for run_id in ids] == [("running", None)] * 3
    # But the silence after it counts.
    await world.rounds(5, seconds=13)
    assert [(await world.attempts(run_id))[0].reason for run_id in ids] == ["heartbeat_lost"] * 3


async def test_a_round_that_is_given_up_leaves_nothing_half_begun(world: RunWorld) -> None:
    """The database goes away between looking and judging; warnings are errors here."""
    world.engine.behaviour = world.claims_and_waits
    ids = [await world.new_run() for _ in range(3)]
    await world.round()
    await world.quiet()
    world.engine.behaviour = world.completes
    world.engine.vanish(f"benchyard-run-{ids[0]}-a1")
    await world.cancel(ids[0])
    await world.round()  # its attempt is ended, and marked as removed
    world.boot(CrashAt(3))
    world.engine.occupy("orphan", {"benchyard.instance": "fake", "benchyard.run": "x", "benchyard.attempt": "1"})
    with pytest.raises(Crash):
        await world.rounds(2)
    gc.collect()
    world.boot()
    await world.round()
    assert "orphan" not in world.engine.containers


async def test_adopted_after_a_restart(world: RunWorld) -> None:
    """F1: runs go on while the orchestrator is away, and are adopted."""
    world.engine.behaviour = world.does_one_and_waits
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    world.boot()
    await world.round(40)
    assert await world.status(run_id) == ("running", None)
    (attempt,) = await world.attempts(run_id)
    item = {"benchmark": "sample", "problem_id": "p1", "outcome": "passed"}
    await world.post(attempt, {"type": "progress", "seq": 2, "item": item}, {"type": "complete", "seq": 3, "items": 2})
    await world.settle()
    assert (await world.row(run_id)).attempt == 1
    await world.check()
