"""`run.failed` for any run: to webhooks that ask for it, of the run's own workspace, and to no other."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.engines.fake.container import FakeContainer
from tests.service.alerts.webhook_receiver import Receiver

if TYPE_CHECKING:
    from tests.served import Service

pytestmark = pytest.mark.anyio

HOOKS = "/api/alerts/webhooks"


async def refused_by_provider(container: FakeContainer) -> int:
    from tests.served import RunnerClient

    runner = RunnerClient(container.boot_line, container.container_id[-12:])
    try:
        await runner.claim()
        await runner.send(runner.next("failed", reason="provider_error", message="401: the key was refused"))
        return 1
    finally:
        await runner.close()


async def a_hook(service: Service, receiver: Receiver, workspace: str = "default", **fields: Any) -> int:
    headers = {"x-benchyard-workspace": workspace}
    made = await service.client.post(HOOKS, json={"url": receiver.url, **fields}, headers=headers)
    assert made.status_code == 201, made.text
    hook_id: int = made.json()["id"]
    return hook_id


async def a_failed_run(service: Service) -> str:
    run_id = await service.new_run()
    assert (await service.until(run_id, "failed", "completed"))["status"] == "failed"
    return run_id


async def messages(receiver: Receiver, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(60):
        while len(receiver.taken) < count:
            await asyncio.sleep(0.02)
    return [json.loads(taken.body) for taken in receiver.taken]


async def test_every_failed_run_is_told_to_who_asked_for_it(service: Service) -> None:
    service.engine.behaviour = refused_by_provider
    answer = await service.client.post("/api/workspaces", json={"slug": "elsewhere", "name": "Elsewhere"})
    assert answer.status_code == 201, answer.text
    async with Receiver() as eager, Receiver() as usual, Receiver() as foreign:
        hook = await a_hook(service, eager, every_failed_run=True)
        other = await a_hook(service, usual)
        await a_hook(service, eager, every_failed_run=True, model_id="demo-weak")
        await a_hook(service, foreign, "elsewhere", every_failed_run=True)
        run_id = await a_failed_run(service)
        (told,) = await messages(eager, 1)
        assert told["type"] == "run.failed"
        data = told["data"]
        assert (data["run_id"], data["model"], data["reason"]) == (run_id, "demo-strong", "provider_error")
        assert (data["kind"], data["trigger_type"], data["why"]) == ("benchmark", "manual", "401: the key was refused")
        assert data["title"] == "demo-strong, sample: the run failed. 401: the key was refused"
        alerts = (await service.client.get("/api/alerts?kind=run.failed")).json()["items"]
        assert [alert["run_id"] for alert in alerts] == [run_id]

        changed = await service.client.patch(f"{HOOKS}/{hook}", json={"every_failed_run": False})
        assert (changed.status_code, changed.json()["every_failed_run"]) == (200, False)
        assert (await service.client.patch(f"{HOOKS}/{other}", json={"every_failed_run": True})).status_code == 200
        second = await a_failed_run(service)
        (told,) = await messages(usual, 1)
        assert told["data"]["run_id"] == second
        assert (len(eager.taken), len(foreign.taken)) == (1, 0)
        for body in ({}, {"every_failed_run": "yes"}, {"every_failed_run": None}):
            assert (await service.client.patch(f"{HOOKS}/{hook}", json=body)).status_code == 422
        assert (await service.client.patch(f"{HOOKS}/999999", json={"every_failed_run": True})).status_code == 404


async def test_without_the_choice_nothing_is_raised_and_a_cancelled_run_is_none(service: Service) -> None:
    service.engine.behaviour = refused_by_provider
    async with Receiver() as receiver:
        hook = await a_hook(service, receiver)
        assert (await service.client.get(f"{HOOKS}/{hook}")).json()["every_failed_run"] is False
        await a_failed_run(service)
        await service.client.patch(f"{HOOKS}/{hook}", json={"every_failed_run": True})
        waiting = await service.new_run(provider="nowhere")
        cancelled = await service.client.post(f"/api/container-runs/{waiting}/cancel")
        assert cancelled.json()["status"] == "cancelled"
        last = await a_failed_run(service)
        (told,) = await messages(receiver, 1)
        assert told["data"]["run_id"] == last
