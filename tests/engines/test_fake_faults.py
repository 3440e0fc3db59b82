"""Every knob of the fake engine does what its name says."""

from __future__ import annotations

import asyncio
import time

import pytest

from orchestrator.engines.engine import ContainerState, EngineError, EngineUnreachable, ImageMissing, NameTaken
from orchestrator.engines.fake.container import FakeContainer
from orchestrator.engines.fake.engine import FakeEngine, Faults
from tests.engines.rigs import FakeRig, order, request, until

pytestmark = pytest.mark.anyio


async def test_unreachable_until_it_is_turned_back(fake_rig: FakeRig) -> None:
    engine = fake_rig.engine
    asked = request(fake_rig, order("sleep"))
    await engine.launch(asked)
    engine.faults.unreachable = True
    for call in (engine.list(), engine.inspect(asked.name), engine.kill(asked.name), engine.info(), engine.prepare()):
        with pytest.raises(EngineUnreachable):
            await call
    assert [name async for name in engine.watch()] == []
    engine.faults.unreachable = False
    assert (await engine.list())[0].state is ContainerState.RUNNING, "nothing happened to it meanwhile"


async def test_so_many_calls_unanswered(fake_rig: FakeRig) -> None:
    fake_rig.engine.faults.unreachable_calls = 2
    for _ in range(2):
        with pytest.raises(EngineUnreachable):
            await fake_rig.engine.list()
    assert await fake_rig.engine.list() == []


@pytest.mark.parametrize(
    ("faults", "error", "state"),
    [
        pytest.param(Faults(launch_error="disk full"), EngineError, None, id="launch_error"),
        pytest.param(Faults(image_missing=True), ImageMissing, None, id="image_missing"),
        pytest.param(Faults(launch_answer_lost=True), EngineUnreachable, ContainerState.RUNNING, id="launch_answer_lost"),
        pytest.param(Faults(start_lost=True), EngineUnreachable, ContainerState.CREATED, id="start_lost"),
    ],
)
async def test_launches_that_fail(
    fake_rig: FakeRig, faults: Faults, error: type[EngineError], state: ContainerState | None
) -> None:
    fake_rig.engine.faults = faults
    asked = request(fake_rig, order("sleep"))
    with pytest.raises(error):
        await fake_rig.engine.launch(asked)
    facts = await fake_rig.engine.inspect(asked.name)
    assert (facts.state if facts else None) is state


@pytest.mark.parametrize(
    ("faults", "state", "code", "oom"),
    [
        pytest.param(Faults(exit_at_once=0), ContainerState.EXITED, 0, False, id="exits 0"),
        pytest.param(Faults(exit_at_once=9), ContainerState.EXITED, 9, False, id="exits 9"),
        pytest.param(Faults(out_of_memory=True), ContainerState.EXITED, 137, True, id="out of memory"),
        pytest.param(Faults(starts_paused=True), ContainerState.PAUSED, None, False, id="paused"),
        pytest.param(Faults(never_claims=True), ContainerState.RUNNING, None, False, id="never claims"),
    ],
)
async def test_containers_that_go_wrong(
    fake_rig: FakeRig, faults: Faults, state: ContainerState, code: int | None, oom: bool
) -> None:
    fake_rig.engine.faults = faults
    asked = request(fake_rig, order("exit", code=5) if faults.never_claims else order("sleep"))
    await fake_rig.engine.launch(asked)
    facts = await until(fake_rig.engine, asked.name, state)
    assert (facts.exit_code, facts.oom_killed) == (code, oom)


async def test_delays_and_vanishing(fake_rig: FakeRig) -> None:
    engine = fake_rig.engine
    engine.faults = Faults(launch_delay_s=0.05, list_delay_s=0.05, vanishes=True)
    asked = request(fake_rig, order("sleep"))
    began = time.monotonic()
    await engine.launch(asked)
    assert await engine.list() == []
    assert time.monotonic() - began >= 0.1
    assert await engine.inspect(asked.name) is None


async def test_a_lost_kill_and_a_refused_remove(fake_rig: FakeRig) -> None:
    engine = fake_rig.engine
    asked = request(fake_rig, order("sleep"))
    await engine.launch(asked)
    engine.faults = Faults(kill_lost=True, remove_error="device busy")
    await engine.kill(asked.name)
    await engine.stop(asked.name, grace_s=0.01)
    with pytest.raises(EngineError, match="device busy"):
        await engine.remove(asked.name)
    facts = await engine.inspect(asked.name)
    assert facts is not None
    assert facts.state is ContainerState.RUNNING
    engine.faults = Faults()
    await engine.remove(asked.name)
    assert engine.containers == {}


async def test_a_name_that_somebody_took(fake_rig: FakeRig) -> None:
    asked = request(fake_rig, order("sleep"))
    fake_rig.engine.occupy(asked.name)
    with pytest.raises(NameTaken):
        await fake_rig.engine.launch(asked)
    assert await fake_rig.engine.list() == []
    assert fake_rig.engine.containers[asked.name].state is ContainerState.RUNNING


async def test_watch_knobs(fake_rig: FakeRig) -> None:
    engine = fake_rig.engine
    engine.faults.watch_ends = True
    assert [name async for name in engine.watch()] == []
    engine.faults = Faults(watch_silent=True)
    waiting = asyncio.ensure_future(anext(engine.watch()))
    await asyncio.sleep(0)
    await engine.launch(request(fake_rig, order("sleep")))
    await asyncio.sleep(0.02)
    assert not waiting.done()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_a_behaviour_is_the_program() -> None:
    told: list[bytes] = []

    async def behave(container: FakeContainer) -> int:
        told.append(container.boot_line)
        container.write(b"working\n")
        for _ in range(1000):
            await asyncio.sleep(0.005)
            await container.checkpoint()
            if container.terminate.is_set():
                raise RuntimeError("cannot end in good order")
        return 0

    engine = FakeEngine(behaviour=behave)
    asked = request(FakeRig(), b"line")
    await engine.launch(asked)
    await asyncio.sleep(0.01)
    engine.pause(asked.name)
    engine.containers[asked.name].terminate.set()
    await asyncio.sleep(0.03)
    assert (await engine.list())[0].state is ContainerState.PAUSED
    engine.pause(asked.name, paused=False)
    facts = await until(engine, asked.name, ContainerState.EXITED)
    assert facts.exit_code == 1, "a behaviour that raises is a program that crashes"
    assert await engine.logs(asked.name, tail_bytes=100) == b"working\nRuntimeError: cannot end in good order\n"
    assert told == [b"line"]
    assert engine.most_live == 1
    assert ("launch", asked.name) in engine.calls
    await engine.close()
    assert asked.name in engine.containers, "containers outlive the engine's user"
    await engine.end_all()


async def test_a_crash_at_any_time(fake_rig: FakeRig) -> None:
    engine = fake_rig.engine
    asked = request(fake_rig, order("sleep"))
    await engine.launch(asked)
    engine.crash(asked.name, oom=True)
    engine.crash(asked.name, 4)
    facts = await until(engine, asked.name, ContainerState.EXITED)
    assert (facts.exit_code, facts.oom_killed) == (137, True), "the first end counts"
