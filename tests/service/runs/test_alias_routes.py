"""Other names for the same things: each behaves as what it stands for, and the old bodies stay as they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from orchestrator.runs.alias_routes import is_alias
from tests.served import TOKEN, Service, served

if TYPE_CHECKING:
    from orchestrator.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.fixture
async def service(new_settings: Callable[..., Settings], anyio_backend: str) -> AsyncIterator[Service]:
    async with served(new_settings()) as it:
        yield it
        await it.engine.end_all()


async def ask(service: Service, method: str, path: str, expect: int = 200, **fields: Any) -> Any:
    answer = await service.client.request(method, path, **fields)
    assert answer.status_code == expect, answer.text
    return answer.json() if answer.content and "json" in answer.headers.get("content-type", "") else answer


async def test_runs_under_their_short_path(service: Service) -> None:
    body = {"model_id": "demo-strong", "sample_size": 3, "benchmark_names": ["sample"]}
    made = await ask(service, "POST", "/api/runs", 202, json=body, headers={"idempotency-key": "k"})
    same = {"model_id": "demo-strong", "sample_size": 3, "benchmarks": ["sample"]}
    again = await ask(service, "POST", "/api/container-runs", 202, json=same, headers={"idempotency-key": "k"})
    assert made == again
    run_id = made["run_id"]
    run = await service.until(run_id, "completed")
    assert "benchmark_names" not in run
    named = await ask(service, "GET", f"/api/runs/{run_id}")
    assert (named["benchmark_names"], set(named) - set(run), named["score"]) == (
        ["sample"],
        {"benchmark_names"},
        run["score"],
    )
    (listed,) = (await ask(service, "GET", "/api/runs"))["items"]
    assert (listed["id"], listed["benchmark_names"]) == (run_id, ["sample"])
    for below in ("score", "items", "items/0", "logs", "calls", "export?format=csv", "stream"):
        paths = [f"/api/{name}/{run_id}/{below}" for name in ("runs", "container-runs")]
        short, long = [(await service.client.get(path)).text for path in paths]
        assert short == long, below
    waiting = (await ask(service, "POST", "/api/runs", 202, json={**body, "provider": "nowhere"}))["run_id"]
    assert (await ask(service, "POST", f"/api/runs/{waiting}/cancel", 202))["status"] == "cancelled"
    again = (await ask(service, "POST", f"/api/runs/{waiting}/retry", 202))["run_id"]
    await ask(service, "POST", f"/api/runs/{again}/cancel", 202)
    await ask(service, "GET", "/api/runs/none", 404)
    await ask(service, "GET", "/api/runs/none/items", 404)
    wrong = await ask(service, "POST", "/api/runs", 422, json={**body, "benchmarks": ["other"]})
    assert "give only one of them" in wrong["detail"]
    await ask(service, "POST", "/api/runs", 404, json={**body, "benchmark_names": ["none"]})
    for names in (["sample", "sample"], "sample", [1]):
        await ask(service, "POST", "/api/runs", 422, json={**body, "benchmark_names": names})
    await ask(service, "POST", "/api/container-runs", 422, json=body)
    assert (await service.stranger.get(f"/api/runs/{run_id}/items")).status_code == 401
    assert (await service.stranger.post("/api/runs", json=body)).status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "alias"),
    [
        ("GET", "/api/runs", False),
        ("GET", "/api/runs/x", False),
        ("DELETE", "/api/runs/x", True),
        ("GET", "/api/runs/x/items", True),
        ("POST", "/api/runs/x/cancel", True),
        ("GET", "/api/runs-of-others/x/y", False),
        ("GET", "/x/api/runs/x/y", False),
    ],
)
async def test_what_is_passed_on(method: str, path: str, alias: bool) -> None:
    assert is_alias(method, path) is alias


async def test_runs_by_trigger(service: Service) -> None:
    manual = await service.new_run(provider="nowhere")
    schedule = {"model_id": "demo-strong", "cron_expression": "0 9 * * 1", "sample_size": 2, "is_paused": True}
    made = await ask(service, "POST", "/api/schedules", 201, json=schedule)
    assert made["paused"] is True
    fired = (await ask(service, "POST", "/api/schedules/demo-strong/run", 202))["run_id"]
    for path in ("/api/runs", "/api/container-runs"):
        for name, expected in (("scheduled", [fired]), ("schedule", [fired]), ("manual", [manual]), ("batch", [])):
            found = await ask(service, "GET", f"{path}?trigger_type={name}")
            assert [run["id"] for run in found["items"]] == expected, name
        await ask(service, "GET", f"{path}?trigger_type=Nobody!", 422)


async def test_a_schedule_is_toggled_by_an_empty_patch(service: Service) -> None:
    path = "/api/schedules/demo-strong"
    await ask(service, "PATCH", path, 404)
    await ask(
        service, "POST", "/api/schedules", 201,
        json={"model_id": "demo-strong", "cron_expression": "0 9 * * 1", "sample_size": 2},
    )  # fmt: skip
    states = []
    for fields in (
        {},
        {},
        {"json": {}},
        {"json": {"is_paused": True}},
        {"json": {"is_paused": False}},
        {"json": {"paused": True}},
    ):
        changed = await ask(service, "PATCH", path, **fields)
        assert changed["is_paused"] == changed["paused"] == (await ask(service, "GET", path))["paused"]
        states.append(changed["is_paused"])
    assert states == [True, False, True, True, False, True]
    assert (await ask(service, "PATCH", f"{path}/pause", json={"is_paused": False}))["paused"] is False
    assert (await ask(service, "PATCH", f"{path}/pause"))["paused"] is True
    assert (await ask(service, "PATCH", f"{path}/pause"))["paused"] is True, "without a body, /pause pauses as before"
    for wrong in ({"is_paused": "yes"}, {"cron_expression": "x"}):
        await ask(service, "PATCH", path, 422, json=wrong)


async def test_generate_with_model_is_queued_and_found_by_its_short_type(service: Service) -> None:
    made = await ask(service, "POST", "/api/eval-sets", 201, json={"name": "S"})
    traces = [{"id": f"t{number}", "input": "a", "output": f"b{number}"} for number in range(6)]
    await ask(service, "POST", "/api/traces", 201, json=traces)
    ratings = [{"trace_id": f"t{number}", "rating": "positive" if number % 2 else "negative"} for number in range(6)]
    await ask(service, "POST", f"/api/eval-sets/{made['id']}/feedback", json={"items": ratings})
    path = f"/api/eval-sets/{made['id']}/generate"
    job = await ask(service, "POST", path, 202, json={"model": "demo-strong"})
    assert job["status"] == "queued"
    other = await ask(service, "POST", path, 202, json={"model_id": "demo-strong", "name": "second"})
    assert other["status"] == "pending"
    ids = {job["job_id"], other["job_id"]}
    for type_ in ("generate", "eval_generate"):
        assert {each["id"] for each in (await ask(service, "GET", f"/api/jobs?type={type_}"))["items"]} == ids
    assert (await ask(service, "GET", "/api/jobs?type=execute"))["items"] == []
    await ask(service, "GET", "/api/jobs?type=dream", 422)
    await ask(service, "POST", path, 422, json={"model": "demo-strong", "model_id": "demo-weak"})
    await ask(service, "POST", path, 422, json={})


async def test_a_batch_by_its_external_id(service: Service) -> None:
    body = {"models": ["demo-strong"], "sample_size": 1, "benchmarks": ["sample"], "external_id": 1700000000}
    made = await ask(service, "POST", "/api/batches", 202, json=body)
    batch = await ask(service, "GET", "/run/1700000000")
    assert (batch["id"], batch["external_id"]) == (made["batch_id"], 1700000000)
    run_id = batch["instance_types"][0]["members"][0]["run_id"]
    assert (await ask(service, "GET", f"/run/{run_id}"))["id"] == run_id
    await ask(service, "GET", "/run/99", 404)
    unknown = await service.stranger.get("/run/99")
    assert (unknown.status_code, unknown.headers["content-type"]) == (401, "application/problem+json")


async def test_sign_in_at_known_paths(service: Service) -> None:
    assert (await service.stranger.get("/api/auth/status")).json()["authenticated"] is False
    wrong = {"authorization": "Bearer wrong"}
    assert (await service.stranger.get("/api/auth/status", headers=wrong)).json()["authenticated"] is False
    told = await ask(service, "GET", "/api/auth/status")
    assert (told["authenticated"], told["role"], told["workspace"]) == (True, "owner", "default")
    to = await service.stranger.get("/api/auth/login")
    assert (to.status_code, to.headers["location"]) == (303, "/login")
    async with httpx.AsyncClient(base_url=service.url, timeout=60) as browser:
        await browser.post("/login", data={"token": TOKEN})
        assert (await browser.get("/api/auth/status")).json()["authenticated"] is True
        foreign = await browser.get("/api/auth/logout", headers={"sec-fetch-site": "cross-site"})
        assert foreign.status_code == 403
        assert (await browser.get("/api/auth/status")).json()["authenticated"] is True
        out = await browser.get("/api/auth/logout")
        assert (out.status_code, out.headers["location"]) == (303, "/login")
        assert (await browser.get("/api/auth/status")).json()["authenticated"] is False
    assert (await service.stranger.get("/api/auth/logout")).status_code == 401
