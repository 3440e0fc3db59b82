"""Events into PostgreSQL with several orchestrators on one database, each with its share of the runners."""

from __future__ import annotations

import asyncio
import multiprocessing
import tempfile
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from sqlmodel import Session

from orchestrator.db.session import Database
from tests.bench.events import load, seeded_run
from tests.bench.growth.curve import Curve, cpu_s
from tests.faults.service import Service
from tests.postgres_from_wheel import PostgresFromWheel
from tests.rows import a_model

RUNNERS, SECONDS = 16, 5.0


def measure(largest: int) -> list[Curve]:
    curve = Curve("orchestrators", "Several orchestrators", "orchestrators", "events a second by the clock", work=False)
    cost = Curve("shared", "What an event costs with several orchestrators", "orchestrators", "ms of processor", work=False)
    with closing(PostgresFromWheel()) as server:
        server.start()
        for number in (each for each in (1, 2, 4) if each <= largest):
            rate, cpu_ms = _one(server.url(server.create()), number)
            curve.add(f"{RUNNERS} runners, PostgreSQL", number, rate)
            cost.add("all orchestrators together", number, cpu_ms)
    return [curve, cost]


def _one(url: str, number: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        services = [
            Service(Path(directory) / str(each), database_url=url, engine="process", reconcile_s=30, lease_s=3600)
            for each in range(number)
        ]
        try:
            for service in services:
                service.start()
            keys = asyncio.run(_runs(url))
            with ProcessPoolExecutor(number, mp_context=multiprocessing.get_context("spawn")) as pool:
                shares = [keys[each::number] for each in range(number)]
                list(pool.map(load, [each.port for each in services], [share[:1] for share in shares], [0.3] * number))
                used = sum(cpu_s(service.pid) for service in services)
                done = list(
                    pool.map(load, [each.port for each in services], [share[1:] for share in shares], [SECONDS] * number)
                )
                used = sum(cpu_s(service.pid) for service in services) - used
        finally:
            for service in services:
                with suppress(Exception):
                    service.close()
    events = sum(count for count, _, _ in done)
    return sum(count / took for count, took, _ in done), 1000 * used / events


async def _runs(url: str) -> list[tuple[str, str]]:
    """The runs of the runners, and one more for each orchestrator to begin with."""
    rows = [seeded_run(datetime.now(UTC), 20_000) for _ in range(RUNNERS + 4)]

    def add(session: Session) -> None:
        session.merge(a_model(id=1))
        session.flush()
        for run, attempt, _ in rows:
            session.add(run)
            session.flush()
            session.add(attempt)

    db = Database(url)
    await db.write(add)
    await db.close()
    return [(run.id, token) for run, _, token in rows]
