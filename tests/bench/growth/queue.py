"""The scheduler against the length of its queue and of its list of schedules: the real dispatcher and database, and the fake
engine."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import timedelta
from pathlib import Path

from sqlmodel import Session

from orchestrator.db.migrate import migrate
from orchestrator.db.session import Database
from orchestrator.engines.fake.container import until_terminated
from orchestrator.runs.scheduling.capacity import Capacity
from tests.bench.growth.curve import Curve, measured, sizes
from tests.manual_clock import START, ManualClock
from tests.rows import a_model, a_run
from tests.service.runs.simulated_scheduler import RunWorld
from tests.service.schedules.simulated_schedules import ScheduleWorld, add_schedule

STARTS = 50
ALL_AT_MOST = 1000


def measure_dispatch(largest: int) -> list[Curve]:
    one = Curve("dispatch", "Starting a run against the queue", "waiting runs", "ms of processor for one start", work=False)
    for size in sizes(10, largest, 10_000):
        starts = min(size, STARTS)
        cpu_ms, clock_ms = asyncio.run(_dispatch(size, starts))
        one.add(f"{STARTS} starts", size, cpu_ms / starts, clock_ms / starts)
        if size <= ALL_AT_MOST:
            cpu_ms, clock_ms = asyncio.run(_dispatch(size, size))
            one.add("as many starts as wait", size, cpu_ms / size, clock_ms / size)
    return [one]


async def _dispatch(waiting: int, starts: int) -> tuple[float, float]:
    """The cost of one round that starts some of the waiting runs, without their launches on the engine."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        url = f"sqlite:///{directory}/bench.db"
        migrate(url)
        db = Database(url)
        world = RunWorld(db, ManualClock())
        world.engine.behaviour = until_terminated
        world.capacity = Capacity(starts, 1e9, 1 << 60)

        def insert(session: Session) -> None:
            session.add(a_model(id=1))
            session.flush()
            session.add_all(a_run(1, now=START + timedelta(milliseconds=number)) for number in range(waiting))

        await db.write(insert)
        world.boot()
        assert await world.leadership.hold()
        with measured() as cost:
            assert await world.dispatcher.round() == starts
        await world.dispatcher.close()
        await world.engine.end_all()
        await db.close()
        return cost.cpu_ms, cost.clock_ms


def measure_firing(largest: int) -> list[Curve]:
    curve = Curve("firing", "Firing all schedules", "schedules due in one minute", "ms of processor for all", work=True)
    for size in sizes(10, largest, 10_000):
        cpu_ms, clock_ms = asyncio.run(_fire(size))
        curve.add("fire once each", size, cpu_ms, clock_ms)
    return [curve]


async def _fire(schedules: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        url = f"sqlite:///{directory}/bench.db"
        migrate(url)
        db = Database(url)
        world = ScheduleWorld(db, ManualClock(), Path(directory))
        now = world.clock.now()

        def insert(session: Session) -> None:
            for number in range(schedules):
                add_schedule(session, now, f"m{number}")

        await db.write(insert)
        _, firing = await world.boot()
        world.clock.advance(60)
        with measured() as cost:
            while await firing.round():
                pass
        assert len(await world.runs()) == schedules
        await db.close()
        return cost.cpu_ms, cost.clock_ms
