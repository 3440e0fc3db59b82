"""Cancel at any moment, also with the orchestrator killed just then (F19)."""

from __future__ import annotations

import random
import time

from tests.bench.faults.fault import Fault
from tests.bench.faults.kinds import open_kinds
from tests.bench.faults.scene import ENDED, Scene
from tests.faults.service import wait_for


def _ended(scene: Scene, run_id: str) -> bool:
    return scene.see(run_id)["status"] in ENDED and not scene.service.containers(run_id, all_states=True)


def cancelled(scene: Scene, rng: random.Random) -> float | None:
    """Cancelled or completed, never both, and the container gone."""
    run_id = scene.submit(12)
    time.sleep(rng.uniform(0, 6))
    answer = scene.service.client.post(f"/api/container-runs/{run_id}/cancel")
    began = time.monotonic()
    assert answer.status_code in (202, 409), answer.text
    wait_for(lambda: _ended(scene, run_id), 15, "ended, and its container gone", 0.2)
    seconds = time.monotonic() - began
    status = scene.see(run_id)["status"]
    assert status in (("cancelled", "completed") if answer.status_code == 202 else ("completed",)), status
    return seconds


def cancelled_and_killed(scene: Scene, rng: random.Random) -> float | None:
    """The answer was 202, so it must not be forgotten."""
    ids = [scene.submit(24) for _ in range(4)]
    time.sleep(rng.uniform(0, 5))
    answers = {run_id: scene.service.client.post(f"/api/container-runs/{run_id}/cancel").status_code for run_id in ids}
    time.sleep(rng.choice([0.0, rng.uniform(0, 1)]))
    scene.service.kill()
    time.sleep(1)
    scene.service.start()
    began = time.monotonic()
    wait_for(lambda: all(_ended(scene, run_id) for run_id in ids), 15, "ended, and the containers gone", 0.2)
    seconds = time.monotonic() - began
    for run_id, code in answers.items():
        assert scene.see(run_id)["status"] in (("cancelled", "completed") if code == 202 else ("completed",))
    return seconds


FAULTS = [
    Fault("F19", "cancelled at a random moment", 15, cancelled, open=open_kinds),
    Fault(
        "F19",
        "4 runs cancelled, orchestrator killed -9 just then",
        15,
        cancelled_and_killed,
        alone=True,
        open=open_kinds,
    ),
]
