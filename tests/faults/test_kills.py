"""Kill it, and see that nothing is lost: F1, F3, F5, F6, F7, F8 of the faults to survive, on the real engine."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable

import pytest

from tests.faults.conftest import ON_EITHER, StartService
from tests.faults.invariants import all_hold
from tests.faults.service import docker, pause

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SLOW_MODEL = {"demo_latency_s": 1.0}
SHORT_LEASE = {"lease_s": 20, "suspect_s": 10}


def test_orchestrator_killed_while_a_run_runs(start_service: StartService) -> None:
    """F1: the run goes on without it and is adopted by the next one, in the same attempt."""
    service = start_service(**SLOW_MODEL)
    run_id = service.submit(sample_size=10, concurrency=2)
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


@ON_EITHER
def test_orchestrator_stopped_for_longer_than_every_lease(start_service: StartService) -> None:
    """F3: silence while we were stopped ourselves proves nothing."""
    service = start_service(**SLOW_MODEL, **SHORT_LEASE)
    run_id = service.submit(sample_size=10, concurrency=2)
    service.wait_items(run_id, 2)
    service.signal(signal.SIGSTOP)
    time.sleep(SHORT_LEASE["lease_s"] + SHORT_LEASE["suspect_s"] + 1)
    service.signal(signal.SIGCONT)
    run = service.wait_status(run_id, "completed")
    assert run["attempt"] == 1
    all_hold(service, run)


def test_containers_that_are_killed_removed_paused_or_cut_off(start_service: StartService) -> None:
    """F5, F6, F7 and F8 for ever, beside one another: the next attempt goes on where the last one was."""
    service = start_service(**SLOW_MODEL, lease_s=30, suspect_s=10)
    faults: dict[str, tuple[Callable[[str], object], str]] = {
        "killed": (lambda name: docker("kill", name), "container_gone"),
        "removed": (lambda name: docker("rm", "-f", name), "container_gone"),
        "paused": (pause, "heartbeat_lost"),
        "cut off": (lambda name: docker("network", "disconnect", "--force", service.network, name), "heartbeat_lost"),
    }
    ids, struck = {}, {}
    for fault, (strike, _) in faults.items():
        ids[fault] = service.submit(sample_size=20, concurrency=2)
        run = struck[fault] = service.wait_items(ids[fault], 2)
        strike(run["attempts"][-1]["container_name"])
    for fault, run_id in ids.items():
        run = service.wait_status(run_id, "completed")
        attempt = struck[fault]["attempt"]
        assert run["attempts"][attempt - 1]["reason"] == faults[fault][1], fault
        assert run["attempt"] > attempt, fault
        kept = [item for item in service.items(run_id) if item["attempt"] <= attempt]
        assert len(kept) >= struck[fault]["progress"]["done"]
    for run_id in ids.values():
        all_hold(service, service.run(run_id))


def test_runner_cut_off_for_a_while(start_service: StartService) -> None:
    """F8: the backlog is delivered afterwards and nothing changes."""
    service = start_service(**SLOW_MODEL, lease_s=300, suspect_s=300)
    run_id = service.submit(sample_size=10, concurrency=2)
    service.wait_items(run_id, 2)
    container = service.container(run_id)
    docker("network", "disconnect", "--force", service.network, container)
    time.sleep(5)
    docker("network", "connect", service.network, container)
    run = service.wait_status(run_id, "completed", within_s=120)
    assert run["attempt"] == 1
    all_hold(service, run)
