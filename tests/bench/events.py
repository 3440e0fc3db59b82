"""Events per second into the database, acknowledged after the commit: many runners posting batches at once.

    .venv/bin/python -m tests.bench.events [SECONDS] [RUNNERS]

Without DATABASE_URL it measures SQLite (synchronous=FULL); with it, that PostgreSQL database. The service, the load and
the bare `fsync` loop it is compared with share this machine.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import httpx

from orchestrator.app import create_app
from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.runs.tables import Attempt, ContainerRun
from orchestrator.serving.runner_listener import QuietServer, server_config
from orchestrator.settings import Settings
from orchestrator.system.identifiers import new_token, token_hash, uuid7
from tests.faults.service import free_ports
from tests.rows import a_benchmark_task

BATCH = 4
ITEM = {
    "type": "progress",
    "item": {"benchmark": "sample", "outcome": "wrong_answer", "answer": "x = 1\n" * 300, "code": "x = 1"},
}


async def runner(client: httpx.AsyncClient, run_id: str, token: str, until: float, waits: list[float]) -> int:
    seq = done = 0
    while time.monotonic() < until:
        events = []
        for _ in range(BATCH):
            seq += 1
            item = {**ITEM["item"], "problem_id": f"p{seq}", "sample_index": 0}  # type: ignore[dict-item]
            events.append({"type": "progress", "seq": seq, "item": item})
        began = time.monotonic()
        headers = {"Authorization": f"Bearer {token}"}
        body = {"attempt": 1, "events": events}
        answer = await client.post(f"/runner/runs/{run_id}/events", json=body, headers=headers)
        waits.append(time.monotonic() - began)
        assert answer.json()["ack_seq"] == seq, answer.text
        done += BATCH
    return done


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


def load(port: int, keys: list[tuple[str, str]], seconds: float) -> tuple[int, float, list[float]]:
    """In a process of its own: how many events were acknowledged, in how many seconds, and every wait."""

    async def drive() -> tuple[int, float, list[float]]:
        waits: list[float] = []
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            began = time.monotonic()
            until = began + seconds
            counts = await asyncio.gather(*(runner(client, run_id, token, until, waits) for run_id, token in keys))
            return sum(counts), time.monotonic() - began, waits

    return asyncio.run(drive())


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


async def measure(directory: Path, seconds: float, runners: int) -> None:
    port, runner_port = free_ports(2)
    settings = Settings(data=directory, port=port, runner_port=runner_port, reconcile_s=3600)
    app = create_app(settings, engine=FakeEngine())
    config = server_config(app, "127.0.0.1", port)
    config.lifespan = "on"
    server = QuietServer(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.05)
    db = app.state.services.db
    await asyncio.sleep(1)
    rows = [seeded_run(datetime.now(UTC), 20_000) for _ in range(runners)]

    def insert(session: object) -> None:
        for run, attempt, _ in rows:
            session.add(run)  # type: ignore[attr-defined]
            session.flush()  # type: ignore[attr-defined]
            session.add(attempt)  # type: ignore[attr-defined]

    await db.write(insert)
    loop = asyncio.get_running_loop()
    keys = [(run.id, token) for run, _, token in rows]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        count, took, waits = await loop.run_in_executor(pool, load, port, keys, seconds)
    server.should_exit = True
    await serving
    waits.sort()
    print(f"database             {db.dialect}")
    print(f"events per second    {count / took:.0f}  ({runners} runners, batches of {BATCH}, {took:.0f} s)")
    p50, p99 = 1000 * statistics.median(waits), 1000 * waits[int(len(waits) * 0.99)]
    print(f"wait for the answer  p50 {p50:.0f} ms, p99 {p99:.0f} ms")
    print(f"bare fsync           {fsync_rate(directory):.0f} per second")


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    runners = int(sys.argv[2]) if len(sys.argv) > 2 else 16
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(measure(Path(directory), seconds, runners))


if __name__ == "__main__":
    main()
