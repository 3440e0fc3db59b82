"""Ten thousand calls in one batch: memory stays small, every answer is settled once, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import httpx
import pytest
import uvicorn

from orchestrator.db.session import Database
from orchestrator.gateway.ledger.database import DatabaseLedger
from orchestrator.gateway.ledger.ledger import BatchedRequest, Collected, Opening
from orchestrator.gateway.ledger.prices import Prices
from orchestrator.gateway.provider_batches import queries
from orchestrator.gateway.provider_batches.access import Access
from orchestrator.gateway.provider_batches.keeper import BatchKeeper, PartLimits
from orchestrator.gateway.provider_batches.lots import Lot
from orchestrator.gateway.provider_batches.part_steps import PartSteps, StepPolicy
from orchestrator.gateway.upstream.http_upstream import HttpUpstream
from orchestrator.gateway.upstream.providers import providers_from_env
from orchestrator.runs import queries as run_queries
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.system.clock import SystemClock
from runner.contract.run_spec import Protocol
from tests.faults.service import free_ports
from tests.rows import a_model, a_run
from tests.service.gateway.batches.batch_provider import KEY, BatchProvider

CALLS = 10_000
PROMPT_BYTES = 6_000
ANSWER_CHARS = 3_000
MOST_BYTES = 48 << 20
"""Less than half of the requests, and about twice what is settled at once."""


def serve(port: int) -> None:
    """The provider in a process of its own, so that its memory is not counted."""
    provider = BatchProvider()
    provider.answer = lambda question: "a" * ANSWER_CHARS
    uvicorn.run(provider.app, port=port, log_config=None, lifespan="off")


@pytest.fixture
def provider_url() -> Iterator[str]:
    (port,) = free_ports(1)
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(port,), daemon=True)
    process.start()
    yield f"http://127.0.0.1:{port}/v1"
    process.kill()
    process.join()


async def _up(url: str) -> None:
    async with httpx.AsyncClient() as client:
        while True:
            try:
                await client.get(f"{url}/nothing")
                return
            except httpx.TransportError:
                await asyncio.sleep(0.1)


@pytest.mark.anyio
async def test_ten_thousand_calls_in_one_batch(database: Database, provider_url: str, tmp_path: Path) -> None:
    clock = SystemClock()
    now = clock.now()
    env = {"BENCHYARD_PROVIDER_HOUSE_BASE_URL": provider_url, "BENCHYARD_PROVIDER_HOUSE_API_KEY": KEY}
    upstream = HttpUpstream(providers_from_env(env)["house"], env, clock=clock)
    leadership = Leadership(database, clock, "one", 3600)
    steps = PartSteps(
        database, leadership, clock, Access(lambda name: upstream), StepPolicy(0.05, 60, most_tries=1, folder=tmp_path)
    )
    keeper = BatchKeeper(database, leadership, clock, steps, PartLimits(50_000, 200 << 20), wake=lambda: None)
    await database.write(lambda session: session.add(a_model()))
    await database.write(lambda session: session.add(a_run(status="running", attempt=1, batch=True, now=now)))
    run_id = (await database.read(lambda session: run_queries.page(session, limit=1)))[0].id
    ledger = DatabaseLedger(database, clock, "one")
    lot = Lot("house", "m", Protocol.OPENAI_CHAT, prices=Prices(Decimal(1), Decimal(1))).text()

    async def collect(number: int) -> None:
        body = {"model": "m", "messages": [{"role": "user", "content": f"{number} " + "q" * PROMPT_BYTES}]}
        request = BatchedRequest(lot, json.dumps(body).encode())
        opening = Opening(run_id, f"b/p{number}/0/0", "h", "house", "m", 10_000, None, attempt=1, batched=request)
        assert isinstance(await ledger.open(opening), Collected)

    for first in range(0, CALLS, 200):
        await asyncio.gather(*(collect(number) for number in range(first, first + 200)))

    def defer(session: object) -> None:
        run = run_queries.lock(session, run_id)  # type: ignore[arg-type]
        assert run is not None
        run.status, run.waiting_since, run.not_before = "pending", now, now + timedelta(hours=30)

    await database.write(defer)
    assert (await ledger.spending(run_id)).reserved_nano_usd == CALLS * 10_000
    await leadership.hold()
    await _up(provider_url)
    tracemalloc.start()
    try:
        while await database.read(lambda session: queries.waits(session, run_id)):
            await keeper.round()
            await asyncio.sleep(0.05)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        await upstream.close()
    assert peak < MOST_BYTES, peak
    (part,) = await database.read(lambda session: queries.parts_since(session, run_id, now))
    assert (part.calls, part.answered) == (CALLS, CALLS)
    money = await ledger.spending(run_id)
    assert money.reserved_nano_usd == 0
    assert money.settled_nano_usd == pytest.approx(CALLS * 120_000)
