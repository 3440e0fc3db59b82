"""A runner network that somebody removes or replaces: noticed, said, made good, without a restart."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tests.faults.conftest import StartService
from tests.faults.service import Service, docker, wait_for

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SUBNET, ADDRESS = "10.213.7.0/24", "10.213.7.1"


def ready(service: Service) -> bool:
    return service.client.get("/readyz").status_code == 200


def part(service: Service, name: str) -> dict[str, Any]:
    found: dict[str, Any] = service.client.get("/readyz").json()["parts"][name]
    return found


def exists(service: Service) -> bool:
    return bool(docker("network", "ls", "--quiet", "--filter", f"name={service.network}"))


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_network_that_is_removed_or_replaced(start_service: StartService) -> None:
    service = start_service(demo_latency_s=0.05, lease_s=5, suspect_s=3, reconcile_s=3)

    # Removed: made again by itself
    docker("network", "rm", service.network)
    wait_for(lambda: exists(service) and ready(service), 60, "the network is back")
    assert service.wait_status(service.submit(sample_size=2), "completed")
    wait_for(lambda: not service.containers(all_states=True), 60, "nothing is on the network")

    # Its name taken by a network that leads outside: said, and nothing is started on it
    service.signal(signal.SIGSTOP)
    docker("network", "rm", service.network)
    docker("network", "create", service.network)
    service.signal(signal.SIGCONT)
    wait_for(lambda: "not fit" in part(service, "network")["sentence"], 60, "it says why it is not ready")
    assert not ready(service)
    waiting = service.submit(sample_size=2)
    docker("network", "rm", service.network)
    assert service.wait_status(waiting, "completed")["attempt"] == 1

    # Replaced by one with another subnet, under a run
    run_id = service.submit(sample_size=30, concurrency=1)
    service.wait_items(run_id, 1)
    container = service.container(run_id)
    service.signal(signal.SIGSTOP)
    docker("network", "disconnect", "--force", service.network, container)
    docker("network", "rm", service.network)
    ours = ("--label", f"benchyard.instance={service.instance}", "--opt", "com.docker.network.bridge.enable_icc=false")
    docker("network", "create", "--internal", "--subnet", SUBNET, *ours, service.network)
    service.signal(signal.SIGCONT)
    run = service.wait_status(run_id, "completed", within_s=300)
    assert len(run["attempts"]) > 1
    assert run["attempts"][-1]["reason"] is None
    wait_for(lambda: ready(service), 60, "ready again")
    assert f'"address": "{ADDRESS}"' in (service.data / "service.log").read_text(), "the listener follows"
