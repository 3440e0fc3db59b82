"""A run says how its model is asked: the runner is told, a retry keeps it, quotes know it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.settings import Settings
from tests.served import RunnerClient, Service, served
from tests.service.providers.strict_lab import StrictLab

pytestmark = pytest.mark.anyio

PARAMS = {
    "seed": 7,
    "stop": ["END"],
    "top_k": 5,
    "system_prompt": "Be brief.",
    "thinking": False,
    "chat_template_kwargs": {"a": 1},
    "extra_body": {"min_p": 0.1},
    "max_tokens": 77,
}
MODEL = {"slug": "lab-m", "provider": "lab", "name": "m", "input_price": 1.0, "output_price": 1.0}


class Specs:
    """A runner that notes what it is told of the model, and reports that the provider failed, which can be retried."""

    def __init__(self) -> None:
        self.models: list[dict[str, Any]] = []

    async def __call__(self, container: Any) -> int:
        runner = RunnerClient(container.boot_line, container.container_id[-12:])
        try:
            if (await runner.claim()).status_code != 200:
                return 3
            self.models.append(runner.spec["model"])
            await runner.send(runner.next("stage", stage="running"))
            for item in runner.open_items():
                await runner.send(runner.next("progress", item={**item, "outcome": "provider_error"}))
            await runner.send(runner.next("complete", items=1))
            return 0
        finally:
            await runner.close()


@pytest.fixture
async def world(new_settings: Callable[..., Settings], anyio_backend: str) -> AsyncIterator[tuple[Service, Specs]]:
    specs = Specs()
    async with served(new_settings(), engine=FakeEngine(behaviour=specs)) as service:
        await service.client.post("/api/models", json={**MODEL, "params": {"temperature": 0.5, "seed": 1}})
        yield service, specs


async def test_the_runner_is_told_and_a_retry_keeps_it(world: tuple[Service, Specs]) -> None:
    service, specs = world
    run_id = await service.new_run(model_id="lab-m", sample_size=1, params={**PARAMS, "temperature": None})
    await service.until(run_id, "completed", "failed")
    assert (await service.run(run_id))["params"] == {**PARAMS, "temperature": None}
    told = specs.models[-1]
    assert {name: told[name] for name in PARAMS} == PARAMS
    assert told["temperature"] is None
    again = (await service.client.post(f"/api/container-runs/{run_id}/retry")).json()["run_id"]
    await service.until(again, "completed", "failed")
    assert specs.models[-1] == told
    plain = await service.new_run(model_id="lab-m", sample_size=1)
    await service.until(plain, "completed", "failed")
    assert (specs.models[-1]["seed"], specs.models[-1]["temperature"], (await service.run(plain))["params"]) == (1, 0.5, {})


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"extra_body": {"model": "x"}}, "model is set by Benchyard"),
        ({"temperature": 9}, "params"),
        ({"request_timeout_s": 5}, "params"),
    ],
)
async def test_what_cannot_be_asked_is_refused(shared_service: Service, params: dict[str, Any], words: str) -> None:
    body = {"model_id": "demo-strong", "sample_size": 1, "params": params}
    answer = await shared_service.client.post("/api/container-runs", json=body)
    assert answer.status_code == 422
    assert words in answer.text


async def test_a_quote_knows_the_limit_and_what_a_budget_can_promise(world: tuple[Service, Specs]) -> None:
    service, _ = world
    async with StrictLab(refused=(), tokens=64).served() as lab:
        await service.client.post("/api/providers", json={"name": "lab", "base_url": lab.url, "allow_private": True})
        body = {"model_id": "lab-m", "sample_size": 2}
        usual = (await service.client.post("/api/quotes", json=body)).json()
        small = (await service.client.post("/api/quotes", json={**body, "params": {"max_tokens": 10}})).json()
        assert small["worst_case_usd"] < usual["worst_case_usd"] / 2
        assert usual["budget_promise"] is None
        await service.client.post("/api/providers/lab/test", json={"model": "lab-m"})
        promise = (await service.client.post("/api/quotes", json=body)).json()["budget_promise"]
        assert "ignores the token limit (up to 4.0 times as many tokens were seen)" in promise
