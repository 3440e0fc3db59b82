"""A model without a price: what its calls cost is unknown, and where money is limited no run of it can be made."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.settings import Settings
from tests.served import Service, served
from tests.service.costs.test_routes import CallingRunner

pytestmark = pytest.mark.anyio

MODEL = {"slug": "unpriced", "provider": "demo", "name": "demo-weak", "protocol": "openai_chat"}
RUN = {"model_id": "unpriced", "sample_size": 2}
SCHEDULE = {"model_id": "unpriced", "cron_expression": "0 3 * * *", "sample_size": 2}


@asynccontextmanager
async def service_with(new_settings: Callable[..., Settings], **changed: Any) -> AsyncIterator[Service]:
    async with served(new_settings(demo_latency_s=0.0, **changed), engine=FakeEngine(behaviour=CallingRunner())) as service:
        answer = await service.client.post("/api/models", json=MODEL)
        assert answer.status_code == 201, answer.text
        yield service
        await service.engine.end_all()


async def get(service: Service, path: str) -> Any:
    answer = await service.client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_cost_that_is_not_known_is_null(new_settings: Callable[..., Settings]) -> None:
    async with service_with(new_settings) as service:
        created = await service.client.post("/api/batches", json={"models": ["unpriced"], "sample_size": 2})
        assert created.status_code == 202, created.text
        batch_id = created.json()["batch_id"]
        (run,) = (await get(service, f"/api/container-runs?batch_id={batch_id}"))["items"]
        run = await service.until(run["id"], "completed")
        unknown = (None, 0.0, 2)
        assert (run["cost_usd"], run["known_cost_usd"], run["unpriced_calls"]) == unknown
        calls = (await get(service, f"/api/container-runs/{run['id']}/calls"))["items"]
        assert [call["cost_usd"] for call in calls] == [None, None]
        costs = await get(service, "/api/costs")
        assert [(item["cost_usd"], item["unpriced_calls"]) for item in costs["items"]] == [(None, 2)]
        assert costs["unpriced_calls"] == 2
        batch = await get(service, f"/api/batches/{batch_id}")
        member = batch["instance_types"][0]["members"][0]
        for found in (batch, member):
            assert (found["cost_usd"], found["known_cost_usd"], found["unpriced_calls"]) == unknown
        exported = await get(service, f"/api/container-runs/{run['id']}/export?format=json")
        assert exported["run"]["cost_usd"] is None
        for page in (f"/runs/{run['id']}", "/runs", "/", f"/batches/{batch_id}", f"/runs/{run['id']}/items/0"):
            text = (await service.client.get(page, headers={"accept": "text/html"})).text
            assert "unknown" in text, page
            assert "$0<" not in text, page

        # A price of 0 is one, and one that is entered later makes the sum known in part.
        prices = {"input_price": 3.0, "output_price": 15.0}
        assert (await service.client.patch("/api/models/unpriced", json=prices)).status_code == 200
        again = await service.until(await service.new_run(model_id="unpriced", sample_size=1, seed=5), "completed")
        assert again["cost_usd"] == again["known_cost_usd"] > 0
        (line,) = (await get(service, "/api/costs?by=model"))["items"]
        assert (line["cost_usd"], line["known_cost_usd"]) == (None, again["cost_usd"])
        free = await service.until(await service.new_run(model_id="demo-weak", sample_size=1), "completed")
        assert (free["cost_usd"], free["unpriced_calls"]) == (0.0, 0)


def refused(answer: httpx.Response, whose: str) -> None:
    assert answer.status_code == 422, answer.text
    detail = answer.json()["detail"]
    assert whose in detail
    assert "enter input_price and output_price" in detail
    assert "benchyard models set unpriced --input-price USD --output-price USD" in detail


async def test_a_budget_needs_a_price_whichever_way_a_run_is_made(new_settings: Callable[..., Settings]) -> None:
    async with service_with(new_settings) as service:
        post = service.client.post
        refused(await post("/api/container-runs", json={**RUN, "budget_usd": 1.0}), "the run has a budget of $1")
        refused(
            await post("/api/batches", json={"models": ["demo-weak", "unpriced"], "sample_size": 2, "budget_usd": 1.0}),
            "budget",
        )
        refused(await post("/api/schedules", json={**SCHEDULE, "budget_usd": 1.0}), "the run has a budget of $1")
        assert (await get(service, "/api/container-runs"))["items"] == [], "nothing of a batch is made"

        # The price is taken away after the run: a retry would meet the same.
        prices = {"input_price": 1.0, "output_price": 0.0}
        assert (await service.client.patch("/api/models/unpriced", json=prices)).status_code == 200
        service.engine.behaviour = None
        made = await post("/api/container-runs", json={**RUN, "budget_usd": 1.0})
        assert made.status_code == 202, made.text
        run_id = made.json()["run_id"]
        assert (await post(f"/api/container-runs/{run_id}/cancel")).status_code == 202
        await service.until(run_id, "cancelled")
        nothing = {"input_price": None, "output_price": None}
        assert (await service.client.patch("/api/models/unpriced", json=nothing)).status_code == 200
        refused(await post(f"/api/container-runs/{run_id}/retry"), "the run has a budget of $1")


async def test_a_limit_per_day_needs_a_price_too_and_is_named(new_settings: Callable[..., Settings]) -> None:
    async with service_with(new_settings) as service:
        saved = await service.client.post("/api/schedules", json=SCHEDULE)
        assert saved.status_code in (200, 201), saved.text
        limit = await service.client.put("/api/limits/workspace", json={"spend_per_day_usd": 7.5})
        assert limit.status_code == 200, limit.text
        refused(await service.client.post("/api/container-runs", json=RUN), "the workspace has a limit of $7.5 a day")
        refused(await service.client.post("/api/schedules/unpriced/run"), "the workspace has a limit of $7.5 a day")
        assert (await service.client.post("/api/container-runs", json={**RUN, "model_id": "demo-weak"})).status_code == 202


async def test_the_budget_of_the_service_is_named(new_settings: Callable[..., Settings]) -> None:
    async with service_with(new_settings, daily_budget_usd=5.0) as service:
        refused(await service.client.post("/api/container-runs", json=RUN), "the service has a budget of $5 a day")
