"""A run that makes real calls at the gateway, and what the API then says of calls, costs and quotes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from orchestrator.engines.fake.container import FakeContainer
from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.runs.warm_pool import queries as pool_queries
from orchestrator.settings import Settings
from tests.served import RunnerClient, Service, served

pytestmark = pytest.mark.anyio


class CallingRunner:
    """Asks the demo model once for each item, under the item's key, and once more at the end."""

    def __init__(self) -> None:
        self.token = ""
        self.gateway = ""
        self.statuses: list[int] = []

    async def ask(self, key: str) -> httpx.Response:
        body = {
            "model": "demo-weak",
            "max_completion_tokens": 50,
            "messages": [{"role": "user", "content": f"What is {key}?"}],
        }
        headers = {"authorization": f"Bearer {self.token}", "x-benchyard-call": key}
        async with httpx.AsyncClient(timeout=20, trust_env=False) as http:
            return await http.post(f"{self.gateway}/demo/v1/chat/completions", json=body, headers=headers)

    async def __call__(self, container: FakeContainer) -> int:
        runner = RunnerClient(container.boot_line)
        try:
            await runner.claim()
            self.token, self.gateway = runner.token, runner.spec["gateway_url"]
            await runner.send(runner.next("stage", stage="running"))
            for item in runner.open_items():
                key = f"{item['benchmark']}/{item['problem_id']}/{item['sample_index']}/0"
                self.statuses += [(await self.ask(key)).status_code for _ in range(2)]
                call = {"call_key": key, "input_tokens": 1000, "output_tokens": 100}
                done = {**item, "outcome": "passed", "calls": [call]}
                await runner.send(runner.next("progress", item=done))
            await runner.send(runner.next("complete", items=len(runner.open_items())))
            return 0
        finally:
            await runner.close()


@pytest.fixture
def runner() -> CallingRunner:
    return CallingRunner()


@pytest.fixture
async def service(
    new_settings: Callable[..., Settings], runner: CallingRunner, anyio_backend: str
) -> AsyncIterator[Service]:
    settings = new_settings(demo_latency_s=0.0, daily_budget_usd=5.0)
    async with served(settings, engine=FakeEngine(behaviour=runner)) as it:
        yield it
        await it.engine.end_all()


async def get(service: Service, path: str, **params: Any) -> dict[str, Any]:
    answer = await service.client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_calls_costs_and_quotes_of_a_run(service: Service, runner: CallingRunner) -> None:
    new = {"model_id": "demo-weak", "sample_size": 3}
    before = (await service.client.post("/api/quotes", json=new)).json()
    assert (before["source"], before["items"], before["price_known"], before["seconds"]) == ("token_limits", 3, True, None)
    run_id = await service.new_run(**new)
    await service.until(run_id, "completed")
    assert runner.statuses == [200] * 6

    first = await get(service, f"/api/container-runs/{run_id}/calls", limit=2)
    rest = await get(service, f"/api/container-runs/{run_id}/calls", limit=2, after=first["next"])
    calls = first["items"] + rest["items"]
    assert [(call["state"], call["tries"], call["replays"], call["lost_sends"]) for call in calls] == [
        ("settled", 1, 1, 0)
    ] * 3
    assert rest["next"] is None

    costs = await get(service, "/api/costs")
    assert [(line["day"], line["model"], line["calls"]) for line in costs["items"]] == [
        (service.clock.now().date().isoformat(), "demo-weak", 3)
    ]
    assert (costs["today_usd"], costs["daily_budget_usd"]) == (0.0, 5.0)
    (line,) = (await get(service, "/api/costs", by="model"))["items"]
    assert (line["day"], line["calls"]) == (None, 3)

    after = (await service.client.post("/api/quotes", json=new)).json()
    assert (after["source"], after["runs_used"]) == ("past_runs", 1)
    assert after["cost_usd"] == {"low": 0.0, "expected": 0.0, "high": 0.0}


@pytest.mark.parametrize("by", ["run", "model", "batch", "schedule", "day"])
async def test_machine_costs(service: Service, by: str) -> None:
    found = await get(service, "/api/machine-costs", by=by)
    assert isinstance(found["items"], list)
    assert (found["vcpu_hour_usd"], found["gib_hour_usd"]) == (0, 0)


async def test_runners_that_stood_ready_are_in_the_costs_and_in_no_run(service: Service) -> None:
    now = service.clock.now()
    for seconds in (3600, 1800):
        await service.services.db.write(
            lambda s, used=seconds: pool_queries.add_idle(s, now, "lite", ready_s=used, vcpu_s=used / 100, gib_s=used / 8)
        )
    found = await get(service, "/api/machine-costs", days=1)
    assert found["items"] == []
    assert found["idle"] == [
        {
            "day": now.date().isoformat(),
            "instance_type": "lite",
            "ready_s": 5400.0,
            "vcpu_s": 54.0,
            "gib_s": 675.0,
            "cost_usd": 0.0,
        }
    ]
    page = await service.client.get("/fleet", headers={"accept": "text/html"})
    assert "Warm runners, last 7 days" in page.text
    assert "Maximum" in page.text


async def test_answers_of_another_run_are_used_again_when_asked_for(service: Service) -> None:
    new = {"model_id": "demo-weak", "sample_size": 2, "samples_per_problem": 2}
    runs = []
    for more in ({}, {"reuse_answers": True}, {}):
        runs.append(await service.new_run(**new, **more))
        await service.until(runs[-1], "completed")
    calls = [(await get(service, f"/api/container-runs/{run_id}/calls"))["items"] for run_id in runs]
    assert [call["source"] for run in calls for call in run] == ["bought"] * 4 + ["cached"] * 4 + ["bought"] * 4
    assert {(call["from_run"], call["from_key"]) for call in calls[1]} == {(runs[0], call["call_key"]) for call in calls[0]}
    assert [(call["tries"], call["cost_usd"]) for call in calls[1]] == [(0, 0.0)] * 4
    assert [(await get(service, f"/api/container-runs/{each}"))["reuse_answers"] for each in runs] == [False, True, False]


async def test_the_same_model_twice_under_one_key_is_one_model(service: Service) -> None:
    model = {"slug": "p/once", "provider": "p", "name": "m", "cache_write_price": 3.75}
    made = [
        await service.client.post("/api/models", json=each, headers={"Idempotency-Key": "k"})
        for each in (model, model, {**model, "name": "other"})
    ]
    assert [each.status_code for each in made] == [201, 201, 409]
    assert made[0].json() == made[1].json()
    assert made[0].json()["cache_write_price"] == 3.75
    assert (await service.client.post("/api/models", json=model)).status_code == 409


async def test_a_token_dies_with_its_attempt(service: Service, runner: CallingRunner) -> None:
    run_id = await service.new_run(model_id="demo-weak", sample_size=1)
    await service.until(run_id, "completed")
    for key in ("sample/new/0/0", (await get(service, f"/api/container-runs/{run_id}/calls"))["items"][0]["call_key"]):
        assert (await runner.ask(key)).status_code == 401


async def test_an_unknown_price_is_said_in_a_quote(service: Service) -> None:
    model = {"slug": "p/m", "provider": "p", "name": "m"}
    assert (await service.client.post("/api/models", json=model)).status_code == 201
    quote = (await service.client.post("/api/quotes", json={"model_id": "p/m", "subset_pct": 50.0})).json()
    assert (quote["price_known"], quote["cost_usd"]) == (False, None)
    assert "p/m has no price" in quote["sentence"]


async def test_sync_without_a_provider(service: Service) -> None:
    answer = await service.client.post("/api/models/sync")
    assert answer.status_code == 200
    assert answer.json().keys() == {"providers", "added", "returned", "missing", "failed"}
