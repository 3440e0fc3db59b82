"""Runs over HTTP: create, look, page, cancel, retry, repeat with the same key, and a database that is locked."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable

import pytest
from sqlmodel import Session

from orchestrator.engines.fake.container import until_terminated
from orchestrator.runs import queries as run_queries
from orchestrator.settings import Settings
from tests.rows import an_item
from tests.served import Service, served

pytestmark = pytest.mark.anyio

RUNS = "/api/container-runs"
GOOD = {"model_id": "demo-strong", "sample_size": 3}
FIXED_FIELDS = {
    *("id", "model_id", "benchmarks", "sample_size", "status", "stage", "trigger_type", "attempt", "progress", "score"),
    *("reason", "error_message", "created_at", "started_at", "completed_at", "cost_usd"),
}


async def test_a_whole_run(service: Service) -> None:
    answer = await service.client.post(RUNS, json=GOOD)
    assert answer.status_code == 202
    run_id = answer.json()["run_id"]
    assert answer.headers["location"] == f"{RUNS}/{run_id}"
    run = await service.until(run_id, "completed", "failed")
    assert set(run) >= FIXED_FIELDS
    assert (run["status"], run["progress"], run["passed"], run["outcomes"]) == (
        "completed",
        {"done": 3, "total": 3},
        2,
        {"passed": 2, "wrong_answer": 1},
    )
    assert run["score"]["low"] < run["score"]["estimate"] < run["score"]["high"]
    items = (await service.client.get(f"{RUNS}/{run_id}/items", params={"outcome": "passed"})).json()["items"]
    assert [item["position"] for item in items] == [0, 2]
    assert (await service.client.get(f"{RUNS}/{run_id}/items/1")).json()["outcome"] == "wrong_answer"
    logs = (await service.client.get(f"{RUNS}/{run_id}/logs")).json()
    assert [line["message"] for line in logs["lines"]] == ["all items done"]
    again = await service.client.post(f"{RUNS}/{run_id}/retry")
    assert again.status_code == 409
    assert (await service.client.post(f"{RUNS}/{run_id}/cancel")).status_code == 409


async def test_the_same_key_gives_the_same_run(service: Service) -> None:
    key = {"idempotency-key": "k1"}
    answers = await asyncio.gather(*(service.client.post(RUNS, json=GOOD, headers=key) for _ in range(6)))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["run_id"] for answer in answers}) == 1
    other = await service.client.post(RUNS, json={**GOOD, "sample_size": 4}, headers=key)
    assert other.status_code == 409
    assert "Idempotency-Key" in other.json()["detail"]
    assert len((await service.client.get(RUNS)).json()["items"]) == 1


async def test_pages(service: Service) -> None:
    service.engine.behaviour = until_terminated
    ids = []
    for _ in range(5):
        service.clock.advance(0.01)
        ids.append(await service.new_run(priority=-1))
    seen, after = [], None
    while True:
        params = {"limit": 2} | ({"after": after} if after else {})
        page = (await service.client.get(RUNS, params=params)).json()
        seen += [run["id"] for run in page["items"]]
        if (after := page["next"]) is None:
            break
    assert seen == ids[::-1]


async def test_cancel_and_retry(service: Service) -> None:
    service.engine.behaviour = until_terminated
    run_id = await service.new_run()
    await service.until(run_id, "starting")

    def one_result(session: Session) -> None:
        run = run_queries.lock(session, run_id)
        assert run is not None
        problem_id = run.task.benchmarks[0].problem_ids[0]
        session.add(an_item(run_id, problem_id))
        run.items_done = 1

    await service.services.db.write(one_result)
    early = await service.client.post(f"{RUNS}/{run_id}/retry")
    assert early.status_code == 409
    assert (await service.client.post(f"{RUNS}/{run_id}/cancel")).status_code == 202
    run = await service.until(run_id, "cancelled")
    assert run["reason"] == "cancelled_by_user"
    assert run["reason_sentence"]
    assert (await service.client.post(f"{RUNS}/{run_id}/cancel")).status_code == 202, "again is no error"
    key = {"idempotency-key": "once"}
    first = await service.client.post(f"{RUNS}/{run_id}/retry", headers=key)
    second = await service.client.post(f"{RUNS}/{run_id}/retry", headers=key)
    assert first.status_code == 202
    assert first.json() == second.json()
    new = await service.run(first.json()["run_id"])
    assert (new["retry_of"], new["trigger_type"], new["progress"]["done"]) == (run_id, "retry", 1)


async def test_models(service: Service) -> None:
    made = await service.client.post(
        "/api/models", json={"slug": "a/b", "provider": "anthropic", "name": "claude", "input_price": 3}
    )
    assert made.status_code == 201
    assert made.json()["protocol"] == "anthropic"
    assert made.json()["prices_entered_at"]
    changed = await service.client.patch("/api/models/a/b", json={"display_name": "B"})
    assert changed.json()["display_name"] == "B"
    assert changed.json()["input_price"] == 3
    assert (await service.client.delete("/api/models/a/b")).status_code == 204
    assert (await service.client.get("/api/models/a/b")).status_code == 404
    # One that has runs is archived, and its slug becomes free.
    run_id = await service.new_run(model_id="demo-weak")
    assert (await service.client.delete("/api/models/demo-weak")).status_code == 204
    assert (await service.run(run_id))["id"] == run_id
    slugs = [model["slug"] for model in (await service.client.get("/api/models")).json()["items"]]
    assert slugs == ["demo-strong"]
    answer = await service.client.post(RUNS, json={"model_id": "demo-weak", "sample_size": 1})
    assert answer.status_code == 404


async def test_a_deleted_model_and_a_run_at_once(service: Service) -> None:
    for number in range(5):
        await service.client.post("/api/models", json={"slug": f"m{number}", "provider": "demo", "name": "x"})
    work = [service.client.post(RUNS, json={"model_id": f"m{n}", "sample_size": 1}) for n in range(5)]
    work += [service.client.delete(f"/api/models/m{n}") for n in range(5)]
    work += [service.client.patch(f"/api/models/m{n}", json={"name": "y"}) for n in range(5)]
    answers = await asyncio.gather(*work)
    assert {answer.status_code for answer in answers} <= {202, 204, 200, 404}


async def test_the_fleet_says_why_something_waits(service: Service) -> None:
    service.engine.behaviour = until_terminated
    for _ in range(5):
        await service.new_run()
    async with asyncio.timeout(60):
        while (fleet := (await service.client.get("/api/fleet")).json())["capacity"]["used_instances"] < 3:
            await asyncio.sleep(0.05)
    assert fleet["engine"]["reachable"]
    assert fleet["waiting"]
    assert "in use" in (why := fleet["waiting"][0]["why"]) or "free" in why
    (kind,) = [kind for kind in fleet["instance_types"] if kind["default"]]
    assert (kind["in_use"], kind["ready"], kind["starting"], kind["max_instances"]) == (3, 0, 0, None)


async def test_health(service: Service) -> None:
    assert (await service.stranger.get("/healthz")).json() == {"status": "ok"}
    async with asyncio.timeout(60):
        while (await service.stranger.get("/readyz")).status_code != 200:
            await asyncio.sleep(0.05)
    metrics = (await service.stranger.get("/metrics")).text
    assert "benchyard_engine_up 1.0" in metrics
    assert (await service.stranger.get("/docs")).status_code == 200
    service.engine.faults.unreachable = True
    async with asyncio.timeout(60):
        while (ready := await service.stranger.get("/readyz")).status_code != 503:
            service.clock.advance(0.1)
            await asyncio.sleep(0.05)
    assert "engine" in ready.json()["problems"][0]
    assert ready.headers["retry-after"]


async def test_a_locked_database_is_503_and_never_a_false_2xx(
    new_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """F12: writes are refused with Retry-After, reads go on, and it recovers by itself."""
    monkeypatch.setattr("orchestrator.db.session.BUSY_TIMEOUT_MS", 300)
    async with served(new_settings()) as service:
        other = sqlite3.connect(service.settings.data / "benchyard.db", isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        answer = await service.client.post(RUNS, json=GOOD)
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert answer.json()["code"] == "UNAVAILABLE"
        assert (await service.client.get(RUNS)).json()["items"] == []
        other.execute("ROLLBACK")
        other.close()
        assert (await service.client.get(RUNS)).json()["items"] == [], "what was refused was not stored"
        run_id = await service.new_run()
        await service.until(run_id, "completed")


async def test_openapi_names_the_token_and_the_problems(service: Service) -> None:
    document = (await service.stranger.get("/openapi.json")).json()
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    assert "HTTPValidationError" not in document["components"]["schemas"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert "application/problem+json" in operation["responses"]["default"]["content"], (path, method)
            assert ("security" in operation) == path.startswith("/api/"), path
