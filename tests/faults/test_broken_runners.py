"""Containers that do not do what they should: F16, F17, F18. Each ends with its own reason, and the service goes on."""

from __future__ import annotations

import json

import pytest

from tests.faults import images
from tests.faults.conftest import ON_EITHER, StartService
from tests.faults.invariants import all_hold
from tests.faults.service import docker, wait_for

pytestmark = [pytest.mark.engine, pytest.mark.slow, ON_EITHER]

BROKEN = {
    "exits-quietly": (images.EXITS_QUIETLY, "protocol"),
    "crashes": (images.CRASHES, "runner_error"),
    "eats-memory": (images.EATS_MEMORY, "out_of_memory"),
    "claims-and-leaves": (images.CLAIMS_AND_LEAVES, "protocol"),
    "completes-without-items": (images.COMPLETES_WITHOUT_ITEMS, "runner_error"),
}
SMALL = {"vcpu": 0.25, "memory_mib": 256, "disk_gb": 2}


def test_broken_runners_fail_each_with_its_reason(start_service: StartService) -> None:
    """An instance type for each way to be broken: all of them at once, beside one another."""
    image = images.build("broken", images.by_instance_type({kind: program for kind, (program, _) in BROKEN.items()}))
    types = json.dumps(dict.fromkeys(BROKEN, SMALL))
    service = start_service(runner_image=image, instance_types=types, default_instance_type="crashes", max_instances=6)
    ids = {kind: service.submit(sample_size=2, instance_type=kind) for kind in BROKEN}
    runs = {kind: service.wait_status(run_id, "failed") for kind, run_id in ids.items()}
    for kind, run in runs.items():
        reason = BROKEN[kind][1]
        assert run["reason"] == reason, kind
        assert run["reason_sentence"]
        assert run["attempt"] == 3
        assert [attempt["reason"] for attempt in run["attempts"]] == [reason] * 3
        all_hold(service, run)
    assert "cannot go on" in service.client.get(f"/api/container-runs/{ids['crashes']}/logs").json()["container_log"]


def test_a_runner_that_never_claims_fails_at_the_start_timeout(start_service: StartService) -> None:
    service = start_service(runner_image=images.build("never-claims", images.NEVER_CLAIMS), start_timeout_s=2)
    run = service.wait_status(service.submit(sample_size=2, instance_type="basic"), "failed")
    assert [attempt["reason"] for attempt in run["attempts"]] == ["start_timeout"] * 3
    all_hold(service, run)


def test_a_runner_that_only_heartbeats_meets_its_deadline(start_service: StartService) -> None:
    image = images.build("hangs", images.HANGS_WITH_HEARTBEATS)
    service = start_service(runner_image=image)
    run_id = service.submit(sample_size=2, deadline_s=6)
    run = service.wait_status(run_id, "failed", within_s=60)
    assert run["reason"] == "deadline"
    assert run["attempt"] == 1
    all_hold(service, run)


def test_missing_image(start_service: StartService) -> None:
    service = start_service(runner_image="benchyard-test-no-such-image:latest")
    run_id = service.submit(sample_size=2)
    run = service.wait_status(run_id, "failed", within_s=60)
    assert run["reason"] == "image_missing"
    assert "images build" in run["reason_sentence"]
    all_hold(service, run)


def test_name_taken_by_a_foreign_container(start_service: StartService) -> None:
    service = start_service(max_instances=1, demo_latency_s=5)
    blocker = service.submit(sample_size=36, concurrency=1)
    service.wait_status(blocker, "running")
    run_id = service.submit(sample_size=1)
    name = f"benchyard-run-{run_id}-a1"
    docker("create", "--name", name, "benchyard-runner:latest")
    try:
        service.client.post(f"/api/container-runs/{blocker}/cancel")
        run = service.wait_status(run_id, "completed", within_s=60)
        assert run["attempts"][0]["reason"] == "name_taken"
        assert docker("inspect", "--format", "{{.State.Status}}", name) == "created"
        all_hold(service, run)
    finally:
        docker("rm", "-f", name)


def test_a_run_that_waits_says_why(start_service: StartService) -> None:
    service = start_service(max_instances=1, demo_latency_s=60)
    blocker = service.submit(sample_size=20, concurrency=1)
    service.wait_status(blocker, "running")
    run_id = service.submit(sample_size=3)
    waiting = wait_for(lambda: service.client.get("/api/fleet").json()["waiting"], 60, "the second one waits")
    assert [row["run_id"] for row in waiting] == [run_id]
    assert "max_instances" in waiting[0]["why"]
    for each in (run_id, blocker):
        service.client.post(f"/api/container-runs/{each}/cancel")
    service.wait_status(blocker, "cancelled", within_s=15)
    wait_for(lambda: not service.containers(all_states=True), 180, "the container is gone")
