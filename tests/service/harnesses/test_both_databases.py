"""Harness runs on SQLite and PostgreSQL: items, score, retry, and a run that is cancelled while its harness works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import pytest

from orchestrator.engines.fake.engine import FakeEngine
from tests.served import Service, served
from tests.service.harnesses.simulated_harness import HARNESS, SimulatedHarness

if TYPE_CHECKING:
    from orchestrator.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.fixture
def harness() -> SimulatedHarness:
    return SimulatedHarness(count=4, passing=3)


@pytest.fixture
async def yard(
    new_settings: Callable[..., Settings],
    migrated_database_url: str,
    dialect: str,
    harness: SimulatedHarness,
    anyio_backend: str,
) -> AsyncIterator[Service]:
    where = {"database_url": migrated_database_url} if dialect == "postgresql" else {}
    settings = new_settings(command_images=("inspect:*",), max_instances=1, **where)
    async with served(settings, engine=FakeEngine(behaviour=harness)) as service:
        yield service
        await service.engine.end_all()


async def submit(service: Service) -> str:
    body = {"kind": "harness", "model_id": "demo-strong", "harness": HARNESS}
    answer = await service.client.post("/api/container-runs", json=body, headers={"idempotency-key": "one"})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["run_id"])


async def until_items(service: Service, run_id: str, count: int) -> None:
    async with asyncio.timeout(60):
        while (await service.run(run_id))["progress"]["done"] < count:
            await asyncio.sleep(0.03)


async def test_a_run_from_queue_to_score(yard: Service) -> None:
    run_id = await submit(yard)
    assert await submit(yard) == run_id, "the same request with the same key is the same run"
    run = await yard.until(run_id, "completed")
    assert (run["kind"], run["progress"], run["benchmarks"]) == ("harness", {"done": 4, "total": 4}, ["sums"])
    assert (run["score"]["n"], run["score"]["passed"]) == (4, 3)
    items = (await yard.client.get(f"/api/container-runs/{run_id}/items")).json()["items"]
    assert [(item["position"], item["problem_id"]) for item in items] == [(n, f"sums/{n}") for n in range(4)]
    board = (await yard.client.get("/api/leaderboard", params={"benchmark": "sums"})).json()
    assert [place["model"] for place in board["places"]] == ["demo-strong"]
    refused = await yard.client.post(f"/api/container-runs/{run_id}/retry")
    assert refused.status_code == 409, "there is nothing left to do"


async def test_a_cancelled_run_keeps_its_items_and_its_harness_ends(yard: Service, harness: SimulatedHarness) -> None:
    harness.go_on.clear()
    run_id = await submit(yard)
    await until_items(yard, run_id, 1)
    answer = await yard.client.post(f"/api/container-runs/{run_id}/cancel")
    assert answer.status_code in (200, 202), answer.text
    run = await yard.until(run_id, "cancelled")
    assert run["progress"]["done"] == 1
    async with asyncio.timeout(60):
        while any(container.running for container in await yard.engine.list()):
            await asyncio.sleep(0.03)
    harness.go_on.set()  # too late for the one that was stopped
    assert (await yard.run(run_id))["progress"]["done"] == 1
    board = await yard.client.get("/api/leaderboard", params={"benchmark": "sums"})
    assert board.status_code == 404, "half a run is not ranked"
    retried = await yard.client.post(f"/api/container-runs/{run_id}/retry")
    assert retried.status_code == 202, retried.text
    again = await yard.until(retried.json()["run_id"], "completed")
    assert (again["score"]["n"], again["score"]["passed"]) == (4, 3), "the item that was there stays, the others follow"


async def test_a_run_cancelled_in_the_queue_never_starts(yard: Service, harness: SimulatedHarness) -> None:
    harness.go_on.clear()
    first = await submit(yard)
    await until_items(yard, first, 1)
    body = {"kind": "harness", "model_id": "demo-weak", "harness": HARNESS}
    waiting = str((await yard.client.post("/api/container-runs", json=body)).json()["run_id"])
    assert (await yard.run(waiting))["status"] == "pending", "there is room for one"
    assert (await yard.client.post(f"/api/container-runs/{waiting}/cancel")).status_code in (200, 202)
    run = await yard.until(waiting, "cancelled")
    assert (run["attempts"], run["progress"]["done"]) == ([], 0)
    harness.go_on.set()
    await yard.until(first, "completed")
    assert len(harness.models) == 1
