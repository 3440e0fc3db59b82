"""Runs on an engine that places containers itself: they wait for room and for machines, and lose their machines."""

from __future__ import annotations

import pytest

from orchestrator.runs.warm_pool.policy import PoolSize
from tests.service.runs.simulated_scheduler import RunWorld

pytestmark = pytest.mark.anyio

UNSCHEDULABLE = "Unschedulable: 0/2 nodes are available: 2 Insufficient cpu."


async def test_no_room_costs_no_attempt_and_keeps_the_place_in_the_queue(world: RunWorld) -> None:
    world.engine.faults.no_room = "exceeded quota: runners"
    first, second = await world.new_run(), await world.new_run()
    await world.rounds(4)
    row = await world.row(first)
    assert (row.status, row.attempt, row.reason) == ("pending", 0, None)
    assert row.waiting_for == "exceeded quota: runners"
    assert await world.attempts(first) == []
    assert (await world.row(second)).status == "pending"
    launches = [name for call, name in world.engine.calls if call == "launch"]
    assert len(launches) <= 5, "one run of a type is tried now and then, not every run in every round"
    world.engine.faults.no_room = None
    await world.settle()
    for run_id in (first, second):
        row = await world.row(run_id)
        assert (row.status, row.attempt, row.waiting_for) == ("completed", 1, None)
    await world.check()


async def test_no_room_for_one_type_does_not_hold_up_another(world: RunWorld) -> None:
    world.engine.faults.no_room = "exceeded quota: runners"
    large = await world.new_run(instance_type="large")
    await world.round()
    world.engine.faults.no_room = None
    small = await world.new_run(instance_type="basic")
    await world.round(1)  # too early to try the large one again
    assert ((await world.row(large)).status, (await world.row(small)).attempt) == ("pending", 1)
    await world.settle()
    assert (await world.row(large)).status == "completed"


async def test_a_cancel_while_there_is_no_room(world: RunWorld) -> None:
    world.engine.faults.no_room = "exceeded quota: runners"
    run_id = await world.new_run()
    await world.round()
    await world.cancel(run_id)
    await world.round(5)
    assert await world.status(run_id) == ("cancelled", "cancelled_by_user")
    await world.check()


async def test_waiting_for_a_machine_is_not_a_late_start(world: RunWorld) -> None:
    world.engine.faults.waits = UNSCHEDULABLE
    run_id = await world.new_run()
    await world.round()
    await world.rounds(30, seconds=14)  # 420 s: far longer than the start timeout
    row = await world.row(run_id)
    assert (row.status, row.attempt, row.waiting_for) == ("starting", 1, UNSCHEDULABLE)
    name = f"benchyard-run-{run_id}-a1"
    world.engine.place(name)
    await world.rounds(8, seconds=14)  # the start timeout counts from here
    row = await world.row(run_id)
    assert (row.status, row.waiting_for) == ("starting", None)
    world.engine.begin(name)
    await world.quiet()
    await world.settle()
    assert ((await world.row(run_id)).status, (await world.row(run_id)).attempt) == ("completed", 1)
    await world.check()


async def test_a_container_that_does_not_start_on_its_machine_times_out(world: RunWorld) -> None:
    world.engine.faults.waits = UNSCHEDULABLE
    run_id = await world.new_run()
    await world.round()
    await world.rounds(20, seconds=14)
    world.engine.place(f"benchyard-run-{run_id}-a1", "machine-7")
    world.engine.faults.waits = None
    await world.rounds(8, seconds=14)
    assert (await world.row(run_id)).status == "starting"
    await world.round(14)
    first = (await world.attempts(run_id))[0]
    assert (first.reason, first.detail) == ("start_timeout", "The container did not start within 120 s on machine-7.")
    await world.settle()
    assert (await world.row(run_id)).status == "completed"
    await world.check()


async def test_no_machine_within_the_waiting_time(world: RunWorld) -> None:
    world.engine.faults.waits = UNSCHEDULABLE
    run_id = await world.new_run()
    await world.round()
    await world.rounds(258, seconds=14)  # an hour and some
    first = (await world.attempts(run_id))[0]
    assert first.reason == "unschedulable"
    assert first.detail == f"The cluster found no machine for the container within 3600 s. {UNSCHEDULABLE}"
    assert f"benchyard-run-{run_id}-a1" not in world.engine.containers, "it could still start beside the next attempt"
    await world.cancel(run_id)
    await world.settle()
    await world.check()


async def test_a_cancel_while_it_waits_for_a_machine(world: RunWorld) -> None:
    world.engine.faults.waits = UNSCHEDULABLE
    run_id = await world.new_run()
    await world.round()
    await world.cancel(run_id)
    await world.round(5)
    assert await world.status(run_id) == ("cancelled", "cancelled_by_user")
    assert world.engine.containers == {}
    await world.check()


async def test_an_interrupted_launch_is_done_again_at_once_and_costs_no_attempt(world: RunWorld) -> None:
    world.engine.faults.boot_line_lost = True
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    world.engine.faults.boot_line_lost = False
    assert (await world.row(run_id)).status == "starting"
    await world.round(1)  # far sooner than the start timeout
    assert not any(container.boot_line_lost for container in world.engine.containers.values())
    await world.settle()
    row = await world.row(run_id)
    assert (row.status, row.attempt, row.attempts_without_progress) == ("completed", 1, 0)
    (attempt,) = await world.attempts(run_id)
    assert attempt.reason is None
    await world.check()


async def test_a_cancel_of_a_run_whose_launch_was_interrupted(world: RunWorld) -> None:
    world.engine.faults.boot_line_lost = True
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    await world.cancel(run_id)
    await world.round(1)
    assert await world.status(run_id) == ("cancelled", "cancelled_by_user")
    assert world.engine.containers == {}
    await world.check()


async def test_a_boot_line_that_somebody_deleted_ends_the_attempt_at_once(world: RunWorld) -> None:
    """This launch was answered, so nobody can say how often the same would happen again: it counts."""
    world.engine.faults.waits = UNSCHEDULABLE
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    container = world.engine.containers[f"benchyard-run-{run_id}-a1"]
    container.boot_line_lost, container.detail = True, "The secret was deleted."
    world.engine.faults.waits = None
    await world.round(1)
    first = (await world.attempts(run_id))[0]
    assert (first.reason, first.detail) == ("engine_error", "The secret was deleted.")
    await world.settle()
    assert ((await world.row(run_id)).status, (await world.row(run_id)).attempt) == ("completed", 2)
    await world.check()


async def test_an_image_that_never_comes_ends_the_attempt_with_the_clusters_words(world: RunWorld) -> None:
    world.engine.faults.waits = "ImagePullBackOff: no such image"
    run_id = await world.new_run()
    await world.round()
    world.engine.containers[f"benchyard-run-{run_id}-a1"].image_missing = True
    world.engine.faults.waits = None
    await world.round(5)
    first = (await world.attempts(run_id))[0]
    assert (first.reason, first.detail) == ("image_missing", "ImagePullBackOff: no such image")
    await world.settle()
    await world.check()


async def test_an_evicted_container_is_told_as_such_and_tried_again(world: RunWorld) -> None:
    world.engine.behaviour = world.does_one_and_waits
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    world.engine.evict(f"benchyard-run-{run_id}-a1", "The node was low on resource: memory.")
    world.engine.behaviour = world.completes
    await world.round(5)
    first = (await world.attempts(run_id))[0]
    assert (first.reason, first.detail, first.exit_code) == ("evicted", "The node was low on resource: memory.", 143)
    await world.settle()
    assert ((await world.row(run_id)).status, (await world.row(run_id)).items_done) == ("completed", 2)
    await world.check()


async def test_a_container_that_disappears_after_its_eviction_was_announced(world: RunWorld) -> None:
    world.engine.behaviour = world.does_one_and_waits
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    name = f"benchyard-run-{run_id}-a1"
    world.engine.evict(name, "The pod was preempted.", at_once=False)
    await world.round(1)
    assert (await world.row(run_id)).status == "running", "it still works"
    world.engine.vanish(name)
    world.engine.behaviour = world.completes
    await world.round(5)
    first = (await world.attempts(run_id))[0]
    assert (first.reason, first.detail) == ("evicted", "The pod was preempted.")
    await world.settle()
    await world.check()


async def test_a_lost_machine_is_named_when_its_runner_is_silent(world: RunWorld) -> None:
    world.engine.behaviour = world.claims_and_waits
    run_id = await world.new_run()
    await world.round()
    await world.quiet()
    world.engine.evict(f"benchyard-run-{run_id}-a1", "Machine node-b does not answer.", at_once=False)
    world.engine.behaviour = world.completes
    await world.rounds(5, seconds=13)
    first = (await world.attempts(run_id))[0]
    assert first.reason == "heartbeat_lost"
    assert first.detail == "The runner reported nothing for 60 s and was killed. Machine node-b does not answer."
    await world.settle()
    await world.check()


async def test_a_warm_runner_may_wait_for_a_machine(world: RunWorld) -> None:
    world.pool_sizes = {"basic": PoolSize(1)}
    world.boot()
    world.engine.faults.waits = UNSCHEDULABLE
    await world.rounds(20, seconds=14)
    (name,) = world.engine.containers
    await world.rounds(10, seconds=14)
    assert [*world.engine.containers] == [name], "one that waits is not replaced"
    world.engine.containers[name].image_missing = True
    world.engine.faults.waits = None
    await world.round(5)
    assert name not in world.engine.containers
    assert world.pool.trouble["basic"] == UNSCHEDULABLE
