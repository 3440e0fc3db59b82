"""Live updates against the number of streams: what one event costs the service, for all of them together."""

from __future__ import annotations

import asyncio
import multiprocessing
import statistics
import tempfile
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from sqlmodel import Session

from orchestrator.db.session import Database, database_url
from orchestrator.runs.live import queries as event_queries
from tests.bench.events import seeded_run
from tests.bench.growth.curve import Curve, cpu_s, sizes
from tests.bench.live import post, watch
from tests.faults.service import TOKEN, Service

SECONDS, PAUSE_S = 6.0, 0.2


def measure(largest: int) -> list[Curve]:
    curve = Curve("streams", "Live updates", "streams", "ms of processor for one event to all", work=True)
    for size in sizes(10, largest, 1000):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
            service = Service(Path(directory), engine="process", reconcile_s=3600, lease_s=3600)
            try:
                service.start()
                cpu_ms, p50_ms = asyncio.run(_one(service, size))
            finally:
                service.close()
        curve.add("an event to all streams", size, cpu_ms, p50_ms)
    return [curve]


async def _one(service: Service, streams: int) -> tuple[float, float]:
    """Processor time per event, and the median wait from the receipt of an event to a stream."""
    db = Database(database_url(None, service.data))
    run, attempt, token = seeded_run(datetime.now(UTC), 20_000)

    def insert(session: Session) -> int:
        session.add(run)
        session.flush()
        session.add(attempt)
        return event_queries.last_number(session)

    before = await db.write(insert)
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(1, mp_context=context) as pool:
        ready, stop = manager.Event(), manager.Event()
        loop = asyncio.get_running_loop()
        watching = loop.run_in_executor(pool, watch, service.port, TOKEN, streams, ready, stop)
        while not ready.is_set():
            await asyncio.sleep(0.05)
        await asyncio.sleep(2)
        used = cpu_s(service.pid)
        await post(service, run.id, token, SECONDS, PAUSE_S)
        used = cpu_s(service.pid) - used
        await asyncio.sleep(2)
        stop.set()
        seen = await watching
    events = await db.read(lambda s: event_queries.after(s, before, limit=10**6))
    await db.close()
    told = {event.id: event.at.timestamp() for event in events if event.type == "progress"}
    waits = [at - told[number] for each in seen for number, at in each if number in told]
    assert len(waits) == len(told) * streams, f"{len(told) * streams - len(waits)} updates were not delivered"
    return 1000 * used / len(told), 1000 * statistics.median(waits)
