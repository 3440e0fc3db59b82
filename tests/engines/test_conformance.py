"""The rules of `orchestrator/engines/engine.py`, asked of every engine: fake, process, docker and kubernetes."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.engines.engine import ContainerState, DiskLimit, EngineError, InstanceType, LaunchRequest, NameTaken
from tests.engines.rigs import SMALL, TOKEN, Rig, first, launch, order, request, until, until_logged

pytestmark = pytest.mark.anyio


async def test_a_launch_runs_the_program_with_its_boot_line(rig: Rig) -> None:
    asked = request(rig, order("sleep", say="hello"))
    facts = await launch(rig.engine, asked)
    assert (facts.name, facts.run_id, facts.attempt, facts.instance_type) == (asked.name, asked.run_id, 1, "small")
    assert facts.state is ContainerState.RUNNING
    assert facts.container_id
    assert facts.exit_code is None
    assert facts.started_at is not None
    assert abs(datetime.now(UTC) - facts.created_at) < timedelta(seconds=30)
    assert await until_logged(rig.engine, asked.name, b"ready hello 0\n"), "standard input ends after the line"
    assert TOKEN.encode() not in await rig.engine.logs(asked.name, tail_bytes=1 << 20)
    assert TOKEN not in repr(facts)


async def test_an_exit_is_kept_with_code_and_log_until_remove(rig: Rig) -> None:
    asked = request(rig, order("exit", code=3))
    await launch(rig.engine, asked)
    facts = await until(rig.engine, asked.name, ContainerState.EXITED)
    assert (facts.exit_code, facts.oom_killed) == (3, False)
    assert facts.finished_at is not None
    assert facts.started_at is not None
    assert facts.finished_at >= facts.started_at
    assert b"ready" in await rig.engine.logs(asked.name, tail_bytes=1000)
    assert await rig.engine.stats(asked.name) is None
    assert [f.name for f in await rig.engine.list()] == [asked.name]
    await rig.engine.remove(asked.name)
    assert await rig.engine.inspect(asked.name) is None
    assert await rig.engine.list() == []


async def test_a_second_launch_of_the_same_attempt_adopts(rig: Rig) -> None:
    asked = request(rig, order("sleep"))
    launched = await launch(rig.engine, asked)
    assert (await rig.engine.launch(asked)).container_id == launched.container_id
    await rig.engine.kill(asked.name)
    await until(rig.engine, asked.name, ContainerState.EXITED)
    adopted = await rig.engine.launch(asked)
    assert (adopted.container_id, adopted.state) == (launched.container_id, ContainerState.EXITED), "never started twice"


async def test_launches_of_one_attempt_at_once_make_one_container(rig: Rig) -> None:
    asked = request(rig, order("sleep", say="once"))
    found = await asyncio.gather(*(rig.engine.launch(asked) for _ in range(4)), return_exceptions=True)
    ids = {facts.container_id for facts in found if not isinstance(facts, BaseException)}
    assert len(ids) == 1, found
    assert len(await rig.engine.list()) == 1
    assert (await until_logged(rig.engine, asked.name, b"ready")).count(b"ready once") == 1


async def test_what_was_only_created_is_started_by_the_next_launch(rig: Rig) -> None:
    asked = request(rig, order("sleep", say="late"))
    await rig.create_only(asked)
    created = await rig.engine.inspect(asked.name)
    assert created is not None
    assert (created.state, created.started_at) == (rig.abilities.unstarted, None)
    assert [facts.state for facts in await rig.engine.list()] == [rig.abilities.unstarted]
    launched = await launch(rig.engine, asked)
    assert (launched.container_id, launched.state) == (created.container_id, ContainerState.RUNNING)
    await until_logged(rig.engine, asked.name, b"ready late")


async def test_what_was_only_created_can_be_removed(rig: Rig) -> None:
    asked = request(rig, order("sleep"))
    await rig.create_only(asked)
    await rig.engine.stop(asked.name, grace_s=1)
    await rig.engine.kill(asked.name)
    await rig.engine.remove(asked.name)
    assert await rig.engine.inspect(asked.name) is None


@pytest.mark.parametrize("change", ["run", "attempt", "instance"])
async def test_a_name_that_is_taken_is_refused_and_left_alone(rig: Rig, change: str) -> None:
    asked = request(rig, order("sleep"))
    owner = rig.sibling("other") if change == "instance" else rig.engine
    theirs = {"run": replace(asked, run_id="x"), "attempt": replace(asked, attempt=7), "instance": asked}[change]
    before = await launch(owner, theirs)
    with pytest.raises(NameTaken, match="left alone"):
        await launch(rig.engine, asked)
    after = await owner.inspect(asked.name)
    assert after is not None
    assert (after.container_id, after.state) == (before.container_id, ContainerState.RUNNING)
    await owner.remove(asked.name)


async def test_containers_of_another_instance_are_neither_shown_nor_touched(rig: Rig) -> None:
    other = rig.sibling("other")
    asked = request(rig, order("sleep"))
    await launch(other, asked)
    assert await rig.engine.list() == []
    for act in (rig.engine.kill, rig.engine.remove, lambda name: rig.engine.stop(name, grace_s=1)):
        with pytest.raises(NameTaken):
            await act(asked.name)
    facts = await other.inspect(asked.name)
    assert facts is not None
    assert facts.state is ContainerState.RUNNING
    await other.remove(asked.name)


async def test_containers_of_a_namesake_are_neither_shown_nor_touched(rig: Rig) -> None:
    """Another installation with the same instance name, such as a restored backup beside its original."""
    other = rig.namesake("they")
    asked = request(rig, order("sleep"))
    theirs = await launch(other, asked)
    ours = request(rig, order("sleep"))
    await launch(rig.engine, ours)
    assert [facts.name for facts in await rig.engine.list()] == [ours.name]
    assert [facts.name for facts in await other.list()] == [asked.name]
    for act in (rig.engine.kill, rig.engine.remove, lambda name: rig.engine.stop(name, grace_s=1)):
        with pytest.raises(NameTaken):
            await act(asked.name)
    with pytest.raises(NameTaken):
        await launch(rig.engine, asked)
    facts = await other.inspect(asked.name)
    assert facts is not None
    assert (facts.container_id, facts.state) == (theirs.container_id, ContainerState.RUNNING)
    await other.remove(asked.name)


async def test_what_an_older_version_launched_is_adopted(rig: Rig) -> None:
    """It wrote no owner on its containers."""
    asked = request(rig, order("sleep"))
    await rig.create_only(asked)
    assert [facts.name for facts in await rig.engine.list()] == [asked.name]
    await rig.engine.remove(asked.name)
    assert await rig.engine.list() == []


async def test_list_shows_every_state(rig: Rig) -> None:
    unstarted = rig.abilities.unstarted.value
    asked = {state: request(rig, order("sleep")) for state in (unstarted, "running")}
    asked["exited"] = request(rig, order("exit", code=0))
    await rig.create_only(asked[unstarted])
    for state in ("running", "exited"):
        await launch(rig.engine, asked[state])
    if rig.abilities.pauses:
        asked["paused"] = await paused(rig, request(rig, order("sleep")))
    await until(rig.engine, asked["exited"].name, ContainerState.EXITED)
    found = {facts.name: facts.state.value for facts in await rig.engine.list()}
    assert found == {one.name: state for state, one in asked.items()}


async def test_stop_asks_politely(rig: Rig) -> None:
    asked = request(rig, order("sleep"))
    await launch(rig.engine, asked)
    await until_logged(rig.engine, asked.name, b"ready")
    await rig.engine.stop(asked.name, grace_s=60)
    assert (await until(rig.engine, asked.name, ContainerState.EXITED)).exit_code == 143


async def test_stop_kills_what_does_not_listen(rig: Rig) -> None:
    asked = request(rig, order("ignore_term"))
    await launch(rig.engine, asked)
    await until_logged(rig.engine, asked.name, b"ready")
    began = time.monotonic()
    await rig.engine.stop(asked.name, grace_s=1)
    assert time.monotonic() - began > 0.9
    assert (await until(rig.engine, asked.name, ContainerState.EXITED)).exit_code == 137


async def paused(rig: Rig, asked: LaunchRequest) -> LaunchRequest:
    await launch(rig.engine, asked)
    await until_logged(rig.engine, asked.name, b"ready")
    await rig.pause(asked.name)
    await until(rig.engine, asked.name, ContainerState.PAUSED)
    return asked


async def test_stop_of_something_paused_ends_it_too(pausing_rig: Rig) -> None:
    asked = await paused(pausing_rig, request(pausing_rig, order("sleep")))
    await pausing_rig.engine.stop(asked.name, grace_s=1)
    assert (await until(pausing_rig.engine, asked.name, ContainerState.EXITED)).exit_code in (137, 143)


async def test_kill_of_something_paused_ends_it_too(pausing_rig: Rig) -> None:
    asked = await paused(pausing_rig, request(pausing_rig, order("ignore_term")))
    await pausing_rig.engine.kill(asked.name)
    facts = await until(pausing_rig.engine, asked.name, ContainerState.EXITED)
    assert (facts.exit_code, facts.oom_killed) == (137, False)


async def test_remove_of_something_paused_frees_the_name(pausing_rig: Rig) -> None:
    asked = await paused(pausing_rig, request(pausing_rig, order("ignore_term")))
    before = await pausing_rig.engine.inspect(asked.name)
    assert before is not None
    await pausing_rig.engine.remove(asked.name)
    assert await pausing_rig.engine.inspect(asked.name) is None
    assert (await launch(pausing_rig.engine, asked)).container_id != before.container_id


async def test_kill(rig: Rig) -> None:
    asked = request(rig, order("ignore_term"))
    await launch(rig.engine, asked)
    await until_logged(rig.engine, asked.name, b"ready")
    await rig.engine.kill(asked.name)
    facts = await until(rig.engine, asked.name, ContainerState.EXITED)
    assert (facts.exit_code, facts.oom_killed) == (137, False)
    await rig.engine.kill(asked.name)
    await rig.engine.stop(asked.name, grace_s=5)


async def test_remove_of_something_alive_kills_it_and_frees_the_name(rig: Rig) -> None:
    asked = request(rig, order("ignore_term"))
    before = await launch(rig.engine, asked)
    await rig.engine.remove(asked.name)
    assert await rig.engine.inspect(asked.name) is None
    again = await launch(rig.engine, asked)
    assert again.container_id != before.container_id


async def test_what_is_not_there(rig: Rig) -> None:
    name = "benchyard-test-nobody-a1"
    await rig.engine.stop(name, grace_s=1)
    await rig.engine.kill(name)
    await rig.engine.remove(name)
    assert await rig.engine.inspect(name) is None
    assert await rig.engine.logs(name, tail_bytes=100) == b""
    assert await rig.engine.stats(name) is None
    assert await rig.engine.list() == []


async def test_what_somebody_else_removed_is_proven_gone(rig: Rig) -> None:
    asked = request(rig, order("sleep"))
    await launch(rig.engine, asked)
    await rig.vanish(asked.name)
    assert await rig.engine.inspect(asked.name) is None
    await rig.engine.remove(asked.name)


async def test_more_memory_than_the_limit_is_told(rig: Rig) -> None:
    asked = request(rig, order("grow"))
    await launch(rig.engine, asked)
    facts = await until(rig.engine, asked.name, ContainerState.EXITED)
    assert (facts.exit_code, facts.oom_killed) == (137, True)


async def test_the_log_is_capped_and_read_from_its_end(rig: Rig) -> None:
    asked = request(rig, order("flood", lines=1500))
    await launch(rig.engine, asked)
    await until_logged(rig.engine, asked.name, b"last\n")
    whole = await rig.engine.logs(asked.name, tail_bytes=100 << 20)
    assert len(whole) <= 1 << 20
    assert len(whole) > 100_000
    assert await rig.engine.logs(asked.name, tail_bytes=7) == b"xx\nlast\n"[-7:]
    assert await rig.engine.logs(asked.name, tail_bytes=0) == b""


async def test_a_program_cannot_write_more_than_its_disk(rig: Rig) -> None:
    """The runner's own `/tmp`; an engine that says `quota` or `memory` limits all files together, `file` a single one."""
    if rig.kind == "fake":
        return  # nothing is written there
    disk = 32 << 20
    asked = request(rig, order("fill", most=disk + (64 << 20)), instance_type=InstanceType("small", 0.5, 96 << 20, disk))
    await launch(rig.engine, asked)
    text = await until_logged(rig.engine, asked.name, b"filled")
    written, why = text.split(b"filled ")[1].strip().split(b" ", 1)
    assert int(written) <= disk, why
    assert why in (b"No space left on device", b"File too large")
    info = await rig.engine.info()
    assert (info.disk_limit is DiskLimit.FILE) is (rig.kind == "process")


async def test_counters_of_what_runs(rig: Rig) -> None:
    asked = request(rig, order("sleep"))
    await launch(rig.engine, asked)
    await until_logged(rig.engine, asked.name, b"ready")
    stats = await rig.engine.stats(asked.name)
    assert (stats is not None) is rig.abilities.counts
    if stats is None:
        return
    assert 0 < stats.cpu_s < 30
    assert 0 < stats.memory_bytes < SMALL.memory_bytes
    assert stats.memory_limit_bytes == SMALL.memory_bytes
    assert stats.pids >= 1


async def test_watch_tells_of_changes_and_can_be_left(rig: Rig) -> None:
    await rig.engine.prepare()
    asked = request(rig, order("sleep"))
    watching = asyncio.create_task(first(rig.engine.watch(), asked.name))
    while not watching.done():  # nobody says when the watch has begun: what came before it is not told
        await launch(rig.engine, asked)
        await rig.engine.kill(asked.name)
        await asyncio.wait([watching], timeout=1)
        await rig.engine.remove(asked.name)
    await watching
    left = asyncio.create_task(first(rig.engine.watch(), "nobody", seconds=60))
    await asyncio.sleep(0.2)
    left.cancel()
    assert isinstance((await asyncio.gather(left, return_exceptions=True))[0], asyncio.CancelledError)


async def test_a_restarted_orchestrator_finds_everything(rig: Rig) -> None:
    asked = request(rig, order("sleep"))
    launched = await launch(rig.engine, asked)
    again = rig.restarted()
    assert [facts.container_id for facts in await again.list()] == [launched.container_id]
    assert (await again.launch(asked)).container_id == launched.container_id
    await again.kill(asked.name)
    assert (await until(again, asked.name, ContainerState.EXITED)).exit_code in rig.abilities.killed


async def test_too_many_cpus_are_refused_with_advice(rig: Rig) -> None:
    asked = request(rig, order("sleep"), instance_type=InstanceType("vast", 4096, 1 << 30, 1 << 30))
    with pytest.raises(EngineError, match=r"vast wants 4096 vCPU and this engine has .* smaller instance type"):
        await launch(rig.engine, asked)
    assert await rig.engine.inspect(asked.name) is None


async def test_prepare_again_and_again(rig: Rig) -> None:
    await asyncio.gather(rig.engine.prepare(), rig.engine.prepare())
    await rig.engine.prepare()


async def test_info_says_how_isolated_it_is(rig: Rig) -> None:
    info = await rig.engine.info()
    assert info.name == rig.kind
    assert info.cpus >= 1
    assert info.memory_bytes > 1 << 28
    assert info.isolation.endswith(".")
    assert info.less_isolated is not rig.abilities.isolated
