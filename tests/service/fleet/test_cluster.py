"""The fleet of an engine that stands for a cluster: machines, placement, what waits for what, and walls that are missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.engines.engine import Machine
from tests.served import Service

pytestmark = pytest.mark.anyio

UNSCHEDULABLE = "Unschedulable: 0/2 nodes are available: 2 Insufficient cpu."


async def until_fleet(service: Service, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            service.services.signals.look()  # the time of these tests stands still
            fleet: dict[str, Any] = (await service.client.get("/api/fleet")).json()
            if condition(fleet):
                return fleet
            await asyncio.sleep(0.05)


async def test_machines_placement_and_what_waits_for_what(service: Service) -> None:
    service.engine.machines = (
        Machine("node-a", True, 4.0, 8 << 30),
        Machine("node-b", False, 4.0, 8 << 30, "not ready: Kubelet stopped posting node status."),
    )
    service.engine.faults.waits = UNSCHEDULABLE
    run_id = await service.new_run()
    fleet = await until_fleet(service, lambda fleet: bool(fleet["containers"] and fleet["machines"]))
    (container,) = fleet["containers"]
    assert (container["state"], container["machine"], container["detail"]) == ("waiting", None, UNSCHEDULABLE)
    async with asyncio.timeout(60):
        while (run := (await service.client.get(f"/api/container-runs/{run_id}")).json())["waiting_for"] is None:
            service.services.signals.look()
            await asyncio.sleep(0.05)
    assert (run["status"], run["waiting_for"]) == ("starting", UNSCHEDULABLE)
    page = (await service.client.get("/fleet")).text
    assert "Machines of the cluster" in page
    assert "Kubelet stopped posting node status." in page
    assert UNSCHEDULABLE in page
    assert UNSCHEDULABLE in (await service.client.get(f"/runs/{run_id}")).text
    name = container["name"]
    service.engine.place(name, "node-a")
    fleet = await until_fleet(service, lambda fleet: fleet["containers"][0]["machine"] == "node-a")
    assert [(machine["name"], machine["containers"]) for machine in fleet["machines"]] == [("node-a", 1), ("node-b", 0)]
    service.engine.begin(name)
    assert (await service.until(run_id, "completed"))["attempt"] == 1


async def test_a_quota_that_is_used_up_is_why_a_run_waits(service: Service) -> None:
    service.engine.faults.no_room = "exceeded quota: runners, requested: pods=1, used: pods=8, limited: pods=8"
    run_id = await service.new_run()
    fleet = await until_fleet(service, lambda fleet: bool(fleet["waiting"] and "quota" in fleet["waiting"][0]["why"]))
    assert fleet["waiting"][0]["why"].startswith("the engine has no room for ")
    run = (await service.client.get(f"/api/container-runs/{run_id}")).json()
    assert (run["status"], run["attempt"]) in (("pending", 0), ("starting", 1))
    assert (await service.client.post(f"/api/container-runs/{run_id}/cancel")).status_code == 202
    await service.until(run_id, "cancelled")


async def test_nothing_starts_while_runners_are_not_contained(service: Service) -> None:
    service.engine.faults.unguarded = "A probe reached the API server."
    fleet = await until_fleet(service, lambda fleet: fleet["banner"] is not None)
    assert fleet["banner"] == "Runs wait until runners are contained. A probe reached the API server."
    run_id = await service.new_run()
    service.services.signals.look()
    body = (await service.stranger.get("/readyz")).json()
    assert body["problems"] == ["network: A probe reached the API server."]
    assert (await service.client.get(f"/api/container-runs/{run_id}")).json()["status"] == "pending"
    service.engine.faults.unguarded = None
    await until_fleet(service, lambda fleet: fleet["banner"] is None)
    assert (await service.until(run_id, "completed"))["attempt"] == 1
