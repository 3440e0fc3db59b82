"""Kill it, and see that nothing is lost: F1, F3, F5, F6, F7, F8 of the faults to survive, on the real engine."""

from __future__ import annotations

import random
import signal
import time

import pytest

from tests.faults.conftest import StartService
from tests.faults.invariants import all_hold
from tests.faults.service import docker, wait_for

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SLOW_MODEL = {"demo_latency_s": 1.0}
SHORT_LEASE = {"lease_s": 5, "suspect_s": 3}


def test_orchestrator_killed_while_a_run_runs(start_service: StartService) -> None:
    """F1: the run goes on without it and is adopted by the next one, in the same attempt."""
    service = start_service(**SLOW_MODEL)
    run_id = service.submit(sample_size=14, concurrency=2)
    service.wait_items(run_id, 2)
    container = service.container(run_id)
    service.kill()
    time.sleep(2)
    assert service.containers(run_id) == [container]
    service.start()
    run = service.wait_status(run_id, "completed")
    assert run["attempt"] == 1
    all_hold(service, run)


def test_orchestrator_killed_while_a_run_starts(start_service: StartService) -> None:
    """F1, at the worst moment: between the row and the container."""
    service = start_service()
    run_id = service.submit(sample_size=6)
    time.sleep(random.Random(4).uniform(0.0, 0.3))
    service.kill()
    service.start()
    all_hold(service, service.wait_status(run_id, "completed", within_s=120))


def test_orchestrator_stopped_for_longer_than_every_lease(start_service: StartService) -> None:
    """F3: silence while we were stopped ourselves proves nothing."""
    service = start_service(**SLOW_MODEL, **SHORT_LEASE)
    run_id = service.submit(sample_size=12, concurrency=2)
    service.wait_items(run_id, 2)
    service.signal(signal.SIGSTOP)
    time.sleep(12)
    service.signal(signal.SIGCONT)
    run = service.wait_status(run_id, "completed")
    assert run["attempt"] == 1
    all_hold(service, run)


def test_runner_killed(start_service: StartService) -> None:
    """F5: the next attempt goes on where the last one was."""
    service = start_service(**SLOW_MODEL)
    run_id = service.submit(sample_size=12, concurrency=2)
    before = service.wait_items(run_id, 3)
    docker("kill", service.container(run_id))
    wait_for(lambda: service.run(run_id)["attempt"] == 2, 60, "a second attempt")
    run = service.wait_status(run_id, "completed")
    kept = [item for item in service.items(run_id) if item["attempt"] == 1]
    assert len(kept) >= before["progress"]["done"]
    assert run["attempts"][0]["reason"] == "container_gone"
    all_hold(service, run)


def test_container_removed_by_an_operator(start_service: StartService) -> None:
    """F6."""
    service = start_service(**SLOW_MODEL)
    run_id = service.submit(sample_size=10, concurrency=2)
    service.wait_items(run_id, 2)
    docker("rm", "-f", service.container(run_id))
    wait_for(lambda: service.run(run_id)["attempt"] == 2, 60, "a second attempt")
    run = service.wait_status(run_id, "completed")
    assert run["attempts"][0]["reason"] == "container_gone"
    all_hold(service, run)


def test_container_paused(start_service: StartService) -> None:
    """F7: suspect, killed, tried again."""
    service = start_service(**SLOW_MODEL, **SHORT_LEASE)
    run_id = service.submit(sample_size=10, concurrency=2)
    service.wait_items(run_id, 2)
    docker("pause", service.container(run_id))
    wait_for(lambda: service.run(run_id)["attempt"] == 2, 60, "a second attempt")
    run = service.wait_status(run_id, "completed")
    assert run["attempts"][0]["reason"] == "heartbeat_lost"
    all_hold(service, run)


def test_runner_cut_off_for_a_while(start_service: StartService) -> None:
    """F8: the backlog is delivered afterwards and nothing changes."""
    service = start_service(**SLOW_MODEL, lease_s=30, suspect_s=30)
    run_id = service.submit(sample_size=10, concurrency=2)
    service.wait_items(run_id, 2)
    container = service.container(run_id)
    docker("network", "disconnect", "--force", service.network, container)
    time.sleep(8)
    docker("network", "connect", service.network, container)
    run = service.wait_status(run_id, "completed", within_s=120)
    assert run["attempt"] == 1
    all_hold(service, run)


def test_runner_cut_off_for_ever(start_service: StartService) -> None:
    """F8."""
    service = start_service(**SLOW_MODEL, **SHORT_LEASE)
    run_id = service.submit(sample_size=10, concurrency=2)
    service.wait_items(run_id, 2)
    docker("network", "disconnect", "--force", service.network, service.container(run_id))
    wait_for(lambda: service.run(run_id)["attempt"] == 2, 60, "a second attempt")
    run = service.wait_status(run_id, "completed")
    assert run["attempts"][0]["reason"] == "heartbeat_lost"
    all_hold(service, run)
