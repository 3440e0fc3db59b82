"""Runners that stand ready: taken once, replaced when unwell, gone when idle, never in the way of a run."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from orchestrator.commands.service import command_task
from orchestrator.engines.engine import ContainerState
from orchestrator.engines.fake.container import FakeContainer
from orchestrator.errors import Unauthorized
from orchestrator.fleet.agents import Introduction
from orchestrator.runs.scheduling.capacity import GIB, Capacity
from orchestrator.runs.tables import ContainerRun
from orchestrator.runs.warm_pool import queries as pool_queries
from orchestrator.runs.warm_pool.hand_off import LONGEST_GAP_S, count_idle_time
from orchestrator.runs.warm_pool.policy import PoolSize
from orchestrator.runs.warm_pool.pool import NAME
from orchestrator.runs.warm_pool.tables import IdleUsage, WarmRunner
from orchestrator.system.identifiers import token_hash
from runner.contract.commands import CommandTask
from runner.contract.run_spec import IdleReading
from tests.service.runs.simulated_scheduler import TYPES, RunWorld

TYPE = next(iter(TYPES))


async def rows(world: RunWorld) -> list[WarmRunner]:
    return list(await world.db.read(pool_queries.waiting))


async def warmed(world: RunWorld, warm: int, sleep_after_s: float = 900) -> None:
    world.pool_sizes[TYPE] = PoolSize(warm, sleep_after_s)
    await world.round()
    await world.until(lambda: all(hasattr(c, "waits") for c in world.engine.containers.values()))


async def asked(world: RunWorld) -> None:
    """Wait until everyone who stands ready has asked at the present time, with what it reads now."""
    cpu_s = world.idle_reading.cpu_s if world.idle_reading else 0.0
    async with asyncio.timeout(60):
        while any((row.seen_at, row.cpu_s) != (world.clock.now(), cpu_s) for row in await rows(world)):
            await asyncio.sleep(0.005)


def standing(world: RunWorld) -> list[str]:
    return [name for name in world.engine.containers if name.startswith(NAME)]


async def until_done(world: RunWorld, run_id: str) -> ContainerRun:
    for _ in range(80):
        await world.round(0.2)
        await world.quiet()
        if (run := await world.row(run_id)).completed_at is not None:
            return run
    raise AssertionError(f"run is {run.status}")


async def test_a_run_is_taken_by_a_runner_that_stands_ready_and_the_pool_fills_again(world: RunWorld) -> None:
    await warmed(world, 1)
    (first,) = standing(world)
    run_id = await world.new_run(instance_type=TYPE)
    assert (await until_done(world, run_id)).status == "completed"
    (attempt,) = await world.attempts(run_id)
    assert (attempt.container_name, attempt.facts["stood_ready"]) == (first, True)
    await world.rounds(3)
    assert first not in world.engine.containers
    assert len(standing(world)) == 1, "another has taken its place"
    assert world.engine.launched.count(first) == 1


async def idle_usage(world: RunWorld) -> IdleUsage:
    (found,) = await world.db.read(lambda session: pool_queries.idle_since(session, "2000-01-01"))
    return found


async def test_what_runners_use_while_they_stand_ready_is_counted_apart_from_runs(world: RunWorld) -> None:
    world.idle_reading = IdleReading(cpu_s=1.5, memory_bytes=GIB // 4)
    await warmed(world, 2)
    await asked(world)
    at_first = await idle_usage(world)
    assert (at_first.instance_type, at_first.vcpu_s) == (TYPE, 3.0)
    # Ten seconds later they still hold as much, and have used a little more
    world.idle_reading = IdleReading(cpu_s=1.75, memory_bytes=GIB // 4)
    world.clock.advance(10)
    await asked(world)
    found = await idle_usage(world)
    assert found.ready_s - at_first.ready_s == pytest.approx(20)
    assert found.gib_s - at_first.gib_s == pytest.approx(20 / 4)
    assert found.vcpu_s == pytest.approx(3.5)
    # A run that takes one of them ends the counting of that one; sent away, the other ends as well
    run_id = await world.new_run(instance_type=TYPE)
    assert (await until_done(world, run_id)).status == "completed"
    world.pool_sizes[TYPE] = PoolSize(0)
    await world.rounds(3)
    assert standing(world) == []
    at_last = await idle_usage(world)
    world.clock.advance(3600)
    await world.rounds(2)
    assert (await idle_usage(world)).ready_s == at_last.ready_s
    assert at_last.gib_s > found.gib_s


async def test_a_night_without_power_is_no_idle_time(world: RunWorld) -> None:
    world.idle_reading = IdleReading(cpu_s=1.0, memory_bytes=GIB)
    await warmed(world, 1)
    await asked(world)
    before = await idle_usage(world)
    (row,) = await rows(world)
    now = world.clock.now() + timedelta(hours=10)
    await world.db.write(lambda session: count_idle_time(session, row, now, None))
    assert (await idle_usage(world)).ready_s - before.ready_s == pytest.approx(LONGEST_GAP_S)


async def test_each_serves_one_run_only(world: RunWorld) -> None:
    await warmed(world, 2)
    ids = [await world.new_run(instance_type=TYPE) for _ in range(6)]
    for run_id in ids:
        await until_done(world, run_id)
    names = [(await world.attempts(run_id))[0].container_name for run_id in ids]
    assert len(set(names)) == 6
    assert not world.engine.doubles


async def test_an_answer_that_was_lost_is_given_again_with_another_token(world: RunWorld) -> None:
    world.engine.behaviour = world.never_claims
    await warmed(world, 1)
    (row,) = await rows(world)
    token = world.token_of(row.container_name)
    assert await world.hand_off.answer(token, "r1", hold_s=0) is None
    run_id = await world.new_run(instance_type=TYPE)
    await world.round()
    first = await world.hand_off.answer(token, "r1", hold_s=0)
    again = await world.hand_off.answer(token, "r1", hold_s=0)
    assert first is not None
    assert again is not None
    assert first.claim.run.id == again.claim.run.id == run_id
    assert first.token != again.token
    with pytest.raises(Exception, match="another runner has used this token"):
        await world.hand_off.answer(token, "r2", hold_s=0)


async def test_a_runner_on_the_line_is_answered_by_the_transaction_that_gives_it_a_run(world: RunWorld) -> None:
    world.engine.behaviour = world.never_claims
    await warmed(world, 1)
    (row,) = await rows(world)
    token = world.token_of(row.container_name)
    on_the_line = asyncio.create_task(world.hand_off.answer(token, "r1", hold_s=3600))
    await asked(world)
    run_id = await world.new_run(instance_type=TYPE)
    await world.dispatcher.round()
    assert (await world.row(run_id)).status == "running", "it was claimed as it was given"
    handed = await on_the_line
    assert handed is not None
    (attempt,) = await world.attempts(run_id)
    assert (handed.claim.run.id, attempt.token_hash) == (run_id, token_hash(handed.token))
    again = await world.hand_off.answer(token, "r1", hold_s=0)
    assert again is not None, "the answer may have been lost"
    assert (again.claim.run.id, again.token == handed.token) == (run_id, False)


async def test_a_token_of_nobody_is_refused(world: RunWorld) -> None:
    with pytest.raises(Unauthorized):
        await world.hand_off.answer("nonsense", "r1", hold_s=0)


@pytest.mark.parametrize("fate", ["exits", "silent", "paused", "never ready"])
async def test_an_unwell_one_is_replaced(world: RunWorld, fate: str) -> None:
    async def asks_once(container: FakeContainer) -> int:
        await world.hand_off.answer(world.token_of(container.name), "r", hold_s=0)
        return await world.never_claims(container)

    world.engine.behaviour = {"never ready": world.never_claims, "silent": asks_once}.get(fate, world.completes)
    await warmed(world, 1)
    (first,) = standing(world)
    container = world.engine.containers[first]
    if fate == "exits":
        await world.engine.kill(first)
    elif fate == "paused":
        container.pause(True)
    world.engine.behaviour = world.completes
    await world.round(130 if fate in ("silent", "never ready") else 1)
    await world.rounds(3, 3)
    assert first not in world.engine.containers
    (second,) = standing(world)
    assert world.engine.containers[second].state is ContainerState.RUNNING


async def test_one_that_dies_as_it_is_given_a_run_costs_the_run_an_attempt_and_nothing_else(world: RunWorld) -> None:
    await warmed(world, 1)
    (first,) = standing(world)
    container = world.engine.containers[first]
    container.pause(True)
    run_id = await world.new_run(instance_type=TYPE)
    await world.dispatcher.round()
    assert (await world.attempts(run_id))[0].container_name == first
    await world.engine.kill(first)
    assert (await until_done(world, run_id)).status == "completed"
    assert [a.number for a in await world.attempts(run_id)] == [1, 2]


async def test_a_run_of_another_type_is_given_the_room(world: RunWorld) -> None:
    world.capacity = Capacity(1, 8.0, 16 * GIB)
    await warmed(world, 1)
    other = next(name for name in TYPES if name != TYPE)
    run_id = await world.new_run(instance_type=other)
    assert (await until_done(world, run_id)).status == "completed"


async def test_the_pool_grows_with_the_work_and_shrinks_when_idle(world: RunWorld) -> None:
    await warmed(world, 1, sleep_after_s=100)
    for run_id in [await world.new_run(instance_type=TYPE) for _ in range(3)]:
        await until_done(world, run_id)
    await world.rounds(2, 1)
    assert len(standing(world)) == 3, "as many as were started within the last minute"
    for _ in range(10):
        await world.round(20)
        await asked(world)
    assert len(standing(world)) == 1


async def test_the_pool_does_not_grow_with_work_that_it_cannot_serve(world: RunWorld) -> None:
    await warmed(world, 1)
    who = Introduction("agent0001", "far", "elsewhere", "docker", [TYPE], 4, 4.0, 16 * GIB, "http://door:1")
    await world.agents.claim(who, set(), hold_s=0)
    task = CommandTask(name="x", image="py:3", argv=["x"], repeats=1)
    of_command = command_task(task)
    for _ in range(2):
        await world.new_run(instance_type=TYPE, provider="elsewhere")
        await world.new_run(instance_type=TYPE, kind="command", task=of_command)
    await world.rounds(3, 1)
    assert len(standing(world)) == 1


async def test_after_a_restart_the_pool_is_started_anew(world: RunWorld) -> None:
    await warmed(world, 1)
    (first,) = standing(world)
    world.boot()
    await world.rounds(3, 1)
    (second,) = standing(world)
    assert first != second


async def test_no_pool_is_wanted_any_more(world: RunWorld) -> None:
    await warmed(world, 2)
    world.pool_sizes.clear()
    await world.rounds(3, 1)
    assert not standing(world)
    assert not await rows(world)


async def test_runs_that_are_not_for_this_machine_do_not_keep_the_pool_empty(world: RunWorld) -> None:
    await world.new_run(instance_type=TYPE, provider="nowhere")
    await warmed(world, 1)
    assert len(standing(world)) == 1


async def test_the_pool_keeps_within_max_instances(world: RunWorld) -> None:
    world.pool_sizes[TYPE] = PoolSize(9)
    await world.rounds(2, 1)
    assert len(standing(world)) == 4, "max_instances holds for the pool as well"
