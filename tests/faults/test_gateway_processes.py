"""Two processes make the model calls of one service on PostgreSQL: each call is bought once, also where one is killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import create_engine, text
from sqlmodel import Session

from orchestrator.models.tables import LlmModel
from orchestrator.runs.tables import Attempt, ContainerRun
from orchestrator.system.identifiers import token_hash, uuid7
from runner.contract.run_spec import call_key
from tests.faults.counting_provider import CountingProvider
from tests.faults.service import Service, wait_for
from tests.postgres_from_wheel import TEMPLATE, PostgresFromWheel
from tests.rows import a_benchmark_task

RUN_TOKEN = "token-of-a-run-that-nobody-started"
AT_ONCE = 16


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingProvider]:
    with CountingProvider(tmp_path / "provider.log", latency_s=0.2) as it:
        monkeypatch.setenv("OPENAI_BASE_URL", it.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
        yield it


@pytest.fixture
def database_url(postgres: PostgresFromWheel) -> Iterator[str]:
    name = postgres.create(TEMPLATE)
    yield postgres.url(name)
    postgres.drop(name)


@pytest.fixture
def service(provider: CountingProvider, database_url: str, memory_path: Path) -> Iterator[Service]:
    service = Service(
        memory_path / "data",
        database_url=database_url,
        engine="process",
        gateway_processes=2,
        reconcile_s=3600,
        lease_s=3600,
        suspect_s=3600,
    )
    try:
        service.start()
        a_living_run(database_url)
        yield service
    finally:
        if service._process is not None and service._process.poll() is None:
            service.stop()
        service.client.close()


def a_living_run(database_url: str) -> None:
    now = datetime.now(UTC)
    run = ContainerRun(
        id=uuid7(now), model_id=0, benchmarks=["sample"], sample_size=1, instance_type="lite", deadline_s=3600,
        task=a_benchmark_task(problem_ids=[f"p{n}" for n in range(500)]),
        status="running", attempt=1, created_at=now, started_at=now,
    )  # fmt: skip
    model = LlmModel(
        slug="counted", provider="openai", name="counting", protocol="openai_chat", input_price=1.0, output_price=2.0,
        created_at=now, updated_at=now,
    )  # fmt: skip
    attempt = Attempt(
        run_id=run.id, number=1, token_hash=token_hash(RUN_TOKEN), engine="process", instance_type="lite",
        container_name="x", dispatched_at=now,
    )  # fmt: skip
    engine = create_engine(database_url)
    with Session(engine) as session:
        session.add(model)
        session.flush()
        assert model.id is not None
        run.model_id = model.id
        session.add(run)
        session.flush()
        session.add(attempt)
        session.commit()
    engine.dispose()


def rows(database_url: str, query: str) -> list[dict[str, Any]]:
    engine = create_engine(database_url)
    try:
        with engine.connect() as connection:
            return [dict(row) for row in connection.execute(text(query)).mappings()]
    finally:
        engine.dispose()


def others_of(service: Service) -> list[int]:
    """The processes that make calls beside the service's own."""
    children = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()
    return [int(pid) for pid in children if b"orchestrator.gateway_process" in Path(f"/proc/{pid}/cmdline").read_bytes()]


async def ask(service: Service, problem: int, *, tries: int = 1) -> httpx.Response:
    """On a connection of its own, so that either process may get it; asked again if the connection breaks, as runners do."""
    body = {
        "model": "counting",
        "max_completion_tokens": 50,
        "messages": [{"role": "user", "content": f"problem {problem}"}],
    }
    headers = {"authorization": f"Bearer {RUN_TOKEN}", "x-benchyard-call": call_key("sample", f"p{problem}", 0)}
    url = f"http://127.0.0.1:{service.runner_port}/gateway/openai/v1/chat/completions"
    while True:
        tries -= 1
        try:
            async with httpx.AsyncClient(timeout=600, trust_env=False) as client:
                return await client.post(url, json=body, headers=headers)
        except httpx.TransportError:
            if not tries:
                raise
            await asyncio.sleep(0.2)


async def ask_all(service: Service, problems: list[int], *, tries: int = 1) -> list[dict[str, Any]]:
    answers = await asyncio.gather(*(ask(service, problem, tries=tries) for problem in problems))
    assert [answer.status_code for answer in answers] == [200] * len(problems), [answer.text for answer in answers]
    return [answer.json() for answer in answers]


def test_two_processes_share_the_calls_and_buy_each_once(
    service: Service, provider: CountingProvider, database_url: str
) -> None:
    # Calls go to both processes
    provider.allow(0)

    async def held() -> set[str]:
        asking = asyncio.create_task(ask_all(service, list(range(AT_ONCE))))
        while len(flights := rows(database_url, "select owner from gateway_flights")) < AT_ONCE:
            assert not asking.done(), asking
            await asyncio.sleep(0.1)
        provider.allow()
        await asking
        return {flight["owner"] for flight in flights}

    owners = asyncio.run(held())
    assert {owner.partition("/")[2] for owner in owners} == {"", "gateway-2"}
    assert len(provider.questions()) == AT_ONCE

    # The same call asked of both at once is bought once, and everybody has its answer
    answers = asyncio.run(ask_all(service, [100] * AT_ONCE))
    assert len(provider.questions()) == AT_ONCE + 1
    assert all(answer == answers[0] for answer in answers)

    # What is no model call is answered by the service itself, on whichever connection it comes
    for _ in range(8):
        answer = httpx.post(f"http://127.0.0.1:{service.runner_port}/runner/v1/claim", json={}, trust_env=False)
        assert answer.headers["content-type"].startswith("application/problem+json"), answer.text

    # Killed in the middle of its calls, it is started again, and nothing is lost or doubled
    before = len(provider.questions())
    provider.allow(before)
    keys = list(range(200, 200 + AT_ONCE))

    async def killed() -> int:
        asking = asyncio.create_task(ask_all(service, keys, tries=1000))
        while len(provider.questions()) < before + AT_ONCE:
            assert not asking.done(), asking
            await asyncio.sleep(0.1)
        owned = rows(database_url, "select owner from gateway_flights where owner like '%/gateway-2'")
        (child,) = others_of(service)
        os.kill(child, signal.SIGKILL)
        await asyncio.sleep(0)
        provider.allow()
        await asking
        assert child not in others_of(service)
        return len(owned)

    lost = asyncio.run(killed())
    assert lost > 0
    settled = rows(database_url, "select call_key from gateway_calls where state = 'settled'")
    assert len(settled) == 2 * AT_ONCE + 1
    assert len(rows(database_url, "select id from gateway_lost_sends")) == lost
    assert len(provider.questions()) == before + AT_ONCE + lost
    wait_for(lambda: service.client.get("/readyz").status_code == 200, 60, "all processes are up again")
    (again,) = others_of(service)

    # When the service stops, none is left
    service.stop()
    wait_for(lambda: not Path(f"/proc/{again}").exists(), 10, "the other process is gone")
