"""Live updates: from the moment that a runner's events reach the service to the moment that each watching client has them.

    .venv/bin/python -m tests.bench.live [CLIENTS] [SECONDS] [BATCHES_PER_SECOND]

The real service in a process of its own, CLIENTS server-sent streams in another, and runners that post batches of events
from here. The time is counted from the receipt of the batch, so it includes the commit. A page in Chromium watches too:
its figure is the time until its own progress counter has moved.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from multiprocessing.synchronize import Event as ProcessEvent
from pathlib import Path

import httpx
from playwright.async_api import async_playwright
from sqlmodel import Session

from orchestrator.db.session import Database, database_url
from orchestrator.runs.live import queries as event_queries
from orchestrator.runs.tables import Event
from tests.bench.events import seeded_run
from tests.bench.pages import cpu_ms
from tests.faults.service import TOKEN, Service

RUNNERS = 4
BATCH = 2
WATCH = """run => { window.moves = []; const text = document.querySelector(`[data-count="${run}"]`);
  new MutationObserver(() => window.moves.push([parseInt(text.textContent), Date.now()]))
    .observe(text, { childList: true, characterData: true, subtree: true }); }"""


async def client(port: int, token: str, seen: list[tuple[int, float]]) -> None:
    """Reads one stream until it is cut off: the number of each event and when it was here."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /api/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n".encode())
    try:
        while piece := await reader.readline():
            if piece.startswith(b"id: "):
                seen.append((int(piece[4:]), time.time()))
    finally:
        writer.close()


def watch(port: int, token: str, clients: int, ready: ProcessEvent, stop: ProcessEvent) -> list[list[tuple[int, float]]]:
    """In a process of its own."""

    async def drive() -> list[list[tuple[int, float]]]:
        seen: list[list[tuple[int, float]]] = [[] for _ in range(clients)]
        tasks = [asyncio.create_task(client(port, token, each)) for each in seen]
        await asyncio.sleep(2)
        ready.set()
        while not stop.is_set():
            await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return seen

    return asyncio.run(drive())


async def post(service: Service, run_id: str, token: str, seconds: float, pause_s: float) -> None:
    headers = {"authorization": f"Bearer {token}"}
    seq, until = 0, time.monotonic() + seconds
    async with httpx.AsyncClient(base_url=service.url, headers=headers, timeout=30) as link:
        while time.monotonic() < until:
            events = []
            for _ in range(BATCH):
                seq += 1
                item = {"benchmark": "sample", "problem_id": f"p{seq}", "outcome": "wrong_answer", "answer": "x = 1\n" * 300}
                events.append({"type": "progress", "seq": seq, "item": item})
            answer = await link.post(f"/runner/runs/{run_id}/events", json={"attempt": 1, "events": events})
            assert answer.json()["ack_seq"] == seq, answer.text
            await asyncio.sleep(pause_s)


async def measure(service: Service, clients: int, seconds: float, rate: float) -> None:
    db = Database(database_url(None, service.data))
    rows = [seeded_run(datetime.now(UTC), 20_000) for _ in range(RUNNERS)]

    def insert(session: Session) -> int:
        for run, attempt, _ in rows:
            session.add(run)
            session.flush()
            session.add(attempt)
        return event_queries.last_number(session)

    before = await db.write(insert)
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(1, mp_context=context) as pool:
        ready, stop = manager.Event(), manager.Event()
        loop = asyncio.get_running_loop()
        watching = loop.run_in_executor(pool, watch, service.port, TOKEN, clients, ready, stop)
        async with AsyncExitStack() as stack:
            stack.callback(stop.set)
            playwright = await stack.enter_async_context(async_playwright())
            path = shutil.which("chromium")
            browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
            page = await browser.new_page()
            await page.goto(f"{service.url}/login?token={TOKEN}")
            await page.goto(f"{service.url}/runs/{rows[0][0].id}")
            await page.evaluate(WATCH, rows[0][0].id)
            while not ready.is_set():
                await asyncio.sleep(0.05)
            used = cpu_ms(service.pid)
            posting = [post(service, run.id, token, seconds, RUNNERS / rate) for run, _, token in rows]
            await asyncio.gather(*posting)
            used = cpu_ms(service.pid) - used
            await asyncio.sleep(2)
            moves: list[list[float]] = await page.evaluate("window.moves")
            await browser.close()
        seen = await watching
    events = await db.read(lambda s: event_queries.after(s, before, limit=10**6))
    await db.close()
    report(events, seen, moves, rows[0][0].id)
    print(f"processor time        {used / max(1, len(events)):.0f} ms of the service per event, for all clients together")


def report(events: Sequence[Event], seen: list[list[tuple[int, float]]], moves: list[list[float]], run_id: str) -> None:
    told = {event.id: event.at.timestamp() for event in events if event.type == "progress"}
    waits = sorted(at - told[number] for each in seen for number, at in each if number in told)
    missing = len(told) * len(seen) - len(waits)
    first = {event.data["done"]: event.at.timestamp() for event in events if event.run_id == run_id}
    shown = sorted(at / 1000 - first[done] for done, at in moves if done in first)
    print(f"clients               {len(seen)}, {len(told)} events, {missing} of {len(told) * len(seen)} not delivered")
    print(f"receipt to client     {spread(waits)}")
    print(f"receipt to page       {spread(shown)}  (counter of a run's page in Chromium, {len(shown)} changes)")


def spread(waits: list[float]) -> str:
    p99 = waits[int(len(waits) * 0.99)]
    return f"p50 {1000 * statistics.median(waits):.0f} ms, p99 {1000 * p99:.0f} ms, most {1000 * waits[-1]:.0f} ms"


def main() -> None:
    given = [float(each) for each in sys.argv[1:]]
    clients, seconds, rate = [*given, *(100.0, 20.0, 10.0)[len(given) :]]
    with tempfile.TemporaryDirectory() as directory:
        service = Service(Path(directory), engine="process", reconcile_s=3600, lease_s=3600)
        try:
            service.start()
            with suppress(KeyboardInterrupt):
                asyncio.run(measure(service, int(clients), seconds, rate))
        finally:
            service.close()


if __name__ == "__main__":
    main()
