"""F2 and F19: die before and after every database write and every engine call, for every k, then start again.

Whatever the moment, no acknowledged result is lost, no run has two live containers, no container stays behind, and the
transition log replays to the state.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.db.session import Database
from orchestrator.engines.fake.container import FakeContainer
from tests.manual_clock import ManualClock
from tests.service.runs.crashes import Crash, CrashAt
from tests.service.runs.simulated_scheduler import RunWorld

pytestmark = pytest.mark.anyio


@pytest.fixture
def dialect() -> str:
    """The sweep is about the order of steps; what a database does with one of them is tested on both elsewhere."""
    return "sqlite"


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """Hundreds of small transactions need no disk."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as name:
        yield Path(name)


async def story(world: RunWorld, crash: CrashAt, *, cancel_after: int | None = None) -> None:
    """One run whose first container dies after an item, and one that is cancelled on its way; crashes are got over."""
    dies_once: set[str] = set()

    async def behaviour(container: FakeContainer) -> int:
        run_id = container.labels["benchyard.run"]
        if run_id == first and run_id not in dies_once:
            dies_once.add(run_id)
            work = asyncio.ensure_future(world.completes(container, items=1))
            while not any(acked == run_id for acked, _ in world.acknowledged) and not work.done():
                await asyncio.sleep(0.001)
            work.cancel()
            return 1
        if run_id == second:
            return await world.completes(container, items=1)
        return await world.completes(container)

    first = await world.new_run()
    second = await world.new_run()
    world.engine.behaviour = behaviour
    world.boot(crash)
    for number in range(40):
        try:
            if number == 2:
                await world.cancel(second)
            await world.round(4)
        except Crash:
            await asyncio.gather(world.dispatcher.launching.ended(), return_exceptions=True)
            world.clock.advance(2)
            world.boot()
        await world.quiet()
        rows = [await world.row(run_id) for run_id in (first, second)]
        if all(row.completed_at for row in rows) and not world.engine.containers:
            break
    await world.check()
    assert (await world.row(first)).status == "completed"
    assert (await world.row(second)).status == "cancelled"


async def count_steps(world: RunWorld) -> int:
    crash = CrashAt()
    await story(world, crash)
    return crash.steps


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("part", range(4))
async def test_every_step_may_be_the_last(sqlite_template: Path, in_memory: Path, after: bool, part: int) -> None:
    def new_world(name: str) -> RunWorld:
        path = in_memory / f"{name}.db"
        path.write_bytes(sqlite_template.read_bytes())
        return RunWorld(Database(f"sqlite:///{path}"), ManualClock())

    world = new_world("count")
    total = await count_steps(world)
    await world.db.close()
    assert total > 20
    for k in range(1 + part, total + 1, 4):
        world = new_world(f"k{k}")
        try:
            await story(world, CrashAt(k, after=after))
        except AssertionError as error:
            raise AssertionError(f"died {'after' if after else 'before'} step {k} of {total}: {error}") from error
        finally:
            await world.engine.end_all()
            await world.db.close()
