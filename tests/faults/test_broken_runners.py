"""Containers that do not do what they should: F16, F17, F18. Each ends with its own reason, and the service goes on."""

from __future__ import annotations

import time

import pytest

from tests.faults import images
from tests.faults.conftest import ON_EITHER, StartService
from tests.faults.invariants import all_hold
from tests.faults.service import docker, wait_for

pytestmark = [pytest.mark.engine, pytest.mark.slow, ON_EITHER]

BROKEN = {
    "never_claims": (images.NEVER_CLAIMS, "start_timeout"),
    "exits_quietly": (images.EXITS_QUIETLY, "protocol"),
    "crashes": (images.CRASHES, "runner_error"),
    "eats_memory": (images.EATS_MEMORY, "out_of_memory"),
    "claims_and_leaves": (images.CLAIMS_AND_LEAVES, "protocol"),
    "completes_without_items": (images.COMPLETES_WITHOUT_ITEMS, "runner_error"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_runner_fails_with_its_reason(kind: str, start_service: StartService) -> None:
    program, reason = BROKEN[kind]
    image = images.build(kind.replace("_", "-"), program)
    service = start_service(runner_image=image, start_timeout_s=3 if kind == "never_claims" else 60)
    run_id = service.submit(sample_size=2, instance_type="basic")
    run = service.wait_status(run_id, "failed", within_s=180)
    assert run["reason"] == reason
    assert run["reason_sentence"]
    assert run["attempt"] == 3
    assert [attempt["reason"] for attempt in run["attempts"]] == [reason] * 3
    if kind == "crashes":
        assert "cannot go on" in service.client.get(f"/api/container-runs/{run_id}/logs").json()["container_log"]
    all_hold(service, run)


def test_a_runner_that_only_heartbeats_meets_its_deadline(start_service: StartService) -> None:
    image = images.build("hangs", images.HANGS_WITH_HEARTBEATS)
    service = start_service(runner_image=image)
    run_id = service.submit(sample_size=2, deadline_s=6)
    run = service.wait_status(run_id, "failed", within_s=6 + 15)
    assert run["reason"] == "deadline"
    assert run["attempt"] == 1
    all_hold(service, run)


def test_missing_image(start_service: StartService) -> None:
    service = start_service(runner_image="benchyard-test-no-such-image:latest")
    run_id = service.submit(sample_size=2)
    run = service.wait_status(run_id, "failed", within_s=20)
    assert run["reason"] == "image_missing"
    assert "build-images" in run["reason_sentence"]
    all_hold(service, run)


def test_name_taken_by_a_foreign_container(start_service: StartService) -> None:
    service = start_service(max_instances=1, demo_latency_s=2.0)
    blocker = service.submit(sample_size=20, concurrency=1)
    service.wait_status(blocker, "running")
    run_id = service.submit(sample_size=3)
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
    service = start_service(max_instances=1, demo_latency_s=2.0)
    blocker = service.submit(sample_size=20, concurrency=1)
    service.wait_status(blocker, "running")
    run_id = service.submit(sample_size=3)
    time.sleep(0.5)
    waiting = service.client.get("/api/fleet").json()["waiting"]
    assert [row["run_id"] for row in waiting] == [run_id]
    assert "max_instances" in waiting[0]["why"]
    for each in (run_id, blocker):
        service.client.post(f"/api/container-runs/{each}/cancel")
    service.wait_status(blocker, "cancelled", within_s=15)
    wait_for(lambda: not service.containers(all_states=True), 60, "the container is gone")
