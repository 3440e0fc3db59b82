"""Events per second into the database, acknowledged after the commit: many runners posting batches at once.

    .venv/bin/python -m tests.bench.events [--seconds 10] [--runners 16] [--postgres]

SQLite with synchronous=FULL in a temporary directory; with `--postgres`, a PostgreSQL server started for it that syncs
every commit to the same directory; with DATABASE_URL, that database. The runners post where real ones do, at the runners'
listener. Service, database, load and the bare `fsync` loop share this machine. The load (`tests.bench.event_load`) takes 10
us per event, 1.5 % of a core at 1,500 events a second; the report names its share and the service's.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from sqlmodel import Session

from orchestrator.app import create_app
from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.runs.tables import Attempt, ContainerRun
from orchestrator.serving.runner_listener import QuietServer, server_config
from orchestrator.settings import Settings
from orchestrator.system.event_loop import run as run_on_the_service_loop
from orchestrator.system.identifiers import new_token, token_hash, uuid7
from tests.bench.event_load import BATCH, LoadReport, load
from tests.faults.service import free_ports
from tests.postgres_from_wheel import DURABLE, PostgresFromWheel
from tests.rows import a_benchmark_task

MOST_PER_RUN = 40_000


def seeded_run(now: datetime, items: int) -> tuple[ContainerRun, Attempt, str]:
    token, run_id = new_token(), uuid7(now)
    problems = [f"p{number}" for number in range(1, items + 1)]
    task = a_benchmark_task(problem_ids=problems)
    run = ContainerRun(
        id=run_id, model_id=1, benchmarks=["sample"], sample_size=items, instance_type="lite", deadline_s=3600, task=task,
        status="running", attempt=1, items_total=items, created_at=now, started_at=now,
    )  # fmt: skip
    attempt = Attempt(
        run_id=run_id, number=1, token_hash=token_hash(token), engine="fake", instance_type="lite",
        container_name=f"c-{run_id}", dispatched_at=now,
    )  # fmt: skip
    return run, attempt, token


def fsync_rate(directory: Path) -> float:
    """What the disk can do: one small write and fsync after the other."""
    count, began = 0, time.monotonic()
    with (directory / "probe").open("wb") as file:
        while time.monotonic() - began < 1:
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
            count += 1
    return count / (time.monotonic() - began)


async def measure(directory: Path, database_url: str | None, seconds: float, runners: int) -> None:
    port, runner_port = free_ports(2)
    settings = Settings(
        data=directory / "data", port=port, runner_port=runner_port, reconcile_s=3600, database_url=database_url
    )
    app = create_app(settings, engine=FakeEngine())
    config = server_config(app, "127.0.0.1", port)
    config.lifespan = "on"
    server = QuietServer(config)
    serving = asyncio.create_task(server.serve())
    while not server.started or not app.state.services.door.is_open:
        await asyncio.sleep(0.05)
    db = app.state.services.db
    rows = [seeded_run(datetime.now(UTC), MOST_PER_RUN) for _ in range(runners)]

    def insert(session: Session) -> None:
        for run, attempt, _ in rows:
            session.add(run)
            session.flush()
            session.add(attempt)

    await db.write(insert)
    loop = asyncio.get_running_loop()
    keys = [(run.id, token) for run, _, token in rows]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        warm_up = min(2.0, seconds / 2)
        await loop.run_in_executor(pool, load, app.state.services.door.url, [], warm_up)  # imports
        cpu = time.process_time()
        report = await loop.run_in_executor(pool, load, app.state.services.door.url, keys, seconds)
        cpu = time.process_time() - cpu
    server.should_exit = True
    await serving
    tell(report, db.dialect, cpu, runners, fsync_rate(directory))


def tell(report: LoadReport, dialect: str, cpu_s: float, runners: int, fsyncs: float) -> None:
    report.waits.sort()
    p50, p99 = 1000 * statistics.median(report.waits), 1000 * report.waits[int(len(report.waits) * 0.99)]
    print(f"database             {dialect}")
    rate = report.events / report.took_s
    print(f"events per second    {rate:.0f}  ({runners} runners, batches of {BATCH}, {report.took_s:.0f} s)")
    print(f"wait for the answer  p50 {p50:.0f} ms, p99 {p99:.0f} ms")
    print(f"service's processor  {1e6 * cpu_s / report.events:.0f} us per event, {cpu_s / report.took_s:.0%} of a core")
    print(f"load's processor     {1e6 * report.cpu_s / report.events:.0f} us per event, {report.cpu_s / report.took_s:.0%}")
    print(f"bare fsync           {fsyncs:.0f} per second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--runners", type=int, default=16)
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database_url = os.environ.get("DATABASE_URL")
        if options.postgres:
            directory.chmod(0o711)  # the server does not run as root
            server = PostgresFromWheel(directory / "postgres", DURABLE)
            stack.callback(server.close)
            server.start()
            database_url = server.url(server.create())
        run_on_the_service_loop(measure(directory, database_url, options.seconds, options.runners))


if __name__ == "__main__":
    main()
