"""Runners that stand ready, in real containers: given one run each, replaced when they die, gone with the service."""

from __future__ import annotations

import signal

import pytest

from tests.faults.conftest import StartService
from tests.faults.service import Service, docker, wait_for

pytestmark = [pytest.mark.engine, pytest.mark.slow]

TYPE = "standard-1"


def standing(service: Service) -> list[str]:
    return [name for name in service.containers() if name.startswith("benchyard-warm-")]


def ready(service: Service) -> int:
    return int(service.client.get("/api/fleet").json()["pools"][0]["ready"])


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_warm_runners(start_service: StartService) -> None:
    service = start_service(warm=f'{{"{TYPE}": 1}}', demo_latency_s=0.05, lease_s=15, suspect_s=5)
    wait_for(lambda: ready(service), 180, "one stands ready")
    (first,) = standing(service)

    run_id = service.submit(sample_size=3)
    run = service.wait_status(run_id, "completed")
    assert [attempt["container_name"] for attempt in run["attempts"]] == [first]
    assert run["attempts"][0]["facts"]["uid"] != 0, "it gave up root before it had a run"
    wait_for(lambda: first not in service.containers(all_states=True), 180, "it is gone after its one run")

    wait_for(lambda: ready(service), 180, "another stands ready")
    (second,) = standing(service)
    docker("kill", second)
    wait_for(lambda: standing(service) not in ([], [second]) and ready(service), 180, "a dead one is replaced")

    (third,) = standing(service)
    service.kill()
    service.start()
    wait_for(lambda: standing(service) not in ([], [third]) and ready(service), 180, "a new service starts its own")
    assert service.wait_status(service.submit(sample_size=2), "completed")

    wait_for(lambda: ready(service), 180, "one stands ready")
    service.signal(signal.SIGTERM)
    wait_for(lambda: not service.containers(all_states=True), 180, "nothing stays behind when the service stops")
