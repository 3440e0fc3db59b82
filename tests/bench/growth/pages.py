"""Pages, and events into the database, against the number of results that are stored and not shown."""

from __future__ import annotations

import asyncio
import multiprocessing
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from sqlmodel import Session

from orchestrator.db.session import Database, database_url
from tests.bench.events import load, seeded_run
from tests.bench.growth.curve import Curve, cheapest, cpu_s, sizes
from tests.faults.service import Service
from tests.stored_runs import Stored, add_schedules, fill

ROUNDS = 7
RUNNERS, SECONDS = 16, 4.0


def measure(largest: int) -> list[Curve]:
    pages = Curve(
        "pages", "Pages against stored results", "stored results, 100 a run", "ms of processor for one view", work=False
    )
    events = Curve("events", "Events against stored results", "stored results", "ms of processor for one event", work=False)
    for size in sizes(1000, largest, 10**6):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
            began = time.monotonic()
            data = Path(directory)
            newest = fill(data, size // Stored.items_per_run)
            add_schedules(data, 10)
            print(f"  {size} results made in {time.monotonic() - began:.0f} s", flush=True)
            service = Service(data, engine="process", reconcile_s=3600, lease_s=3600)
            try:
                service.start()
                _pages(service, newest, size, pages)
                _events(service, size, events)
            finally:
                service.close()
    return [pages, events]


def _pages(service: Service, newest: list[str], size: int, curve: Curve) -> None:
    one, other = newest
    paths = {
        "runs": "/runs", "run": f"/runs/{one}", "overview": "/", "leaderboard": "/leaderboard?benchmark=sample",
        "item": f"/runs/{one}/items/7", "compare": f"/compare?run={one}&run={other}", "schedules": "/schedules",
        "models": "/models", "fleet": "/fleet",
    }  # fmt: skip
    for name, path in paths.items():

        def view(path: str = path) -> None:
            answer = service.client.get(path)
            assert answer.status_code == 200, (path, answer.text[:300])

        view()
        cost = cheapest(ROUNDS, view, service.pid)
        curve.add(name, size, cost.cpu_ms, cost.clock_ms)


def _events(service: Service, size: int, curve: Curve) -> None:
    rows = [seeded_run(datetime.now(UTC), 20_000) for _ in range(RUNNERS)]

    async def insert() -> None:
        db = Database(database_url(None, service.data))

        def add(session: Session) -> None:
            for run, attempt, _ in rows:
                session.add(run)
                session.flush()
                session.add(attempt)

        await db.write(add)
        await db.close()

    asyncio.run(insert())
    keys = [(run.id, token) for run, _, token in rows]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(load, service.port, keys[:1], 0.3).result()
        used = cpu_s(service.pid)
        count, took, _ = pool.submit(load, service.port, keys[1:], SECONDS).result()
        used = cpu_s(service.pid) - used
    curve.add("into SQLite, 15 runners", size, 1000 * used / count, 1000 * took / count)
    print(f"  {'':14} {size:>9}  {count / took:.0f} events a second by the clock", flush=True)
