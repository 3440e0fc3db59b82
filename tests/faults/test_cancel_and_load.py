"""Cancel at any moment (F19), and many runs at once."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.faults.conftest import ON_EITHER, StartService
from tests.faults.invariants import all_hold, nothing_left
from tests.faults.service import wait_for

pytestmark = [pytest.mark.engine, pytest.mark.slow, ON_EITHER]

ENDED = ("completed", "failed", "cancelled")


def test_cancel_at_any_moment(start_service: StartService) -> None:
    """F19: cancelled or completed, never both, and the container is gone."""
    service = start_service(demo_latency_s=0.1)
    rng = random.Random(19)
    for _ in range(8):
        run_id = service.submit(sample_size=8, concurrency=2)
        time.sleep(rng.uniform(0, 4))
        answer = service.client.post(f"/api/container-runs/{run_id}/cancel")
        assert answer.status_code in (202, 409), answer.text
        run = service.wait_status(run_id, "cancelled", "completed", within_s=15)
        if answer.status_code == 409:
            assert run["status"] == "completed"
        wait_for(lambda run_id=run_id: not service.containers(run_id, all_states=True), 180, "its container is gone")
        all_hold(service, run)


def test_fifty_runs_at_once(start_service: StartService) -> None:
    """All complete, never more than four containers, none lost, none twice."""
    service = start_service(max_instances=4, demo_latency_s=0.05)
    with ThreadPoolExecutor(10) as pool:
        ids = list(pool.map(lambda _: service.submit(sample_size=2), range(50)))
    assert len(set(ids)) == 50
    most = 0
    end = time.monotonic() + 3600
    while True:
        most = max(most, len(service.containers()))
        counts = {run["id"]: run["status"] for run in service.client.get("/api/container-runs?limit=100").json()["items"]}
        if all(counts[run_id] in ENDED for run_id in ids):
            break
        assert time.monotonic() < end, counts
        time.sleep(0.5)
    assert most <= 4
    for run_id in ids:
        run = service.run(run_id)
        assert run["status"] == "completed"
        assert run["attempt"] == 1
        assert run["progress"] == {"done": 2, "total": 2}
    nothing_left(service)
