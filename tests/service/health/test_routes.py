"""`/readyz` says whether a run could be started now, part by part."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.settings import Settings
from tests.served import Service, served

pytestmark = pytest.mark.anyio


async def until_parts(service: Service, **wanted: bool) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            service.services.signals.look()  # the time of these tests stands still
            answer = await service.stranger.get("/readyz")
            body: dict[str, Any] = answer.json()
            assert (answer.status_code == 200) is all(part["ok"] for part in body["parts"].values())
            assert (body["status"] == "ready") is (answer.status_code == 200)
            if all(body["parts"][name]["ok"] is ok for name, ok in wanted.items()):
                return body
            await asyncio.sleep(0.05)


async def test_every_part_is_named_and_comes_back(service: Service) -> None:
    await until_parts(service, database=True, engine=True, network=True, runners=True, disk=True, loops=True)
    service.engine.faults.network_gone = "The runner network was removed."
    body = await until_parts(service, network=False, engine=True)
    assert body["problems"] == ["network: The runner network was removed."]
    async with asyncio.timeout(60):
        while (banner := (await service.client.get("/api/fleet")).json()["banner"]) is None:
            service.services.signals.look()
            await asyncio.sleep(0.05)
    assert "Containers would not reach this service" in banner
    held = await service.new_run()
    service.engine.faults.network_gone = None
    await until_parts(service, network=True)
    assert (await service.until(held, "completed", "failed"))["attempt"] == 1
    service.engine.faults.unreachable = True
    assert await service.services.fleet.troubles()
    waiting = await service.new_run()  # no round of the reconciler has seen the engine yet
    assert "does not answer" in (await service.client.get("/api/fleet")).json()["banner"]
    body = await until_parts(service, engine=False)
    assert "does not answer" in body["parts"]["engine"]["sentence"]
    assert (await service.run(waiting))["status"] == "pending"
    service.engine.faults.unreachable = False
    await until_parts(service, engine=True)


async def test_a_disk_without_room(new_settings: Callable[..., Settings]) -> None:
    async with served(new_settings(min_free_disk_bytes=1 << 60)) as service:
        body = await until_parts(service, disk=False, engine=True)
        assert "free" in body["parts"]["disk"]["sentence"]
        assert body["status"] == "unready"


async def test_loops_that_stand_still(service: Service) -> None:
    await until_parts(service, loops=True)
    await service.services.loops.close()
    service.clock.advance(3600)
    body = await until_parts(service, loops=False)
    assert "3600 s ago" in body["parts"]["loops"]["sentence"]
