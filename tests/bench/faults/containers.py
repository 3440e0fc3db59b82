"""Faults of containers: killed, removed, paused, cut off (F5 to F8)."""

from __future__ import annotations

import random
import time

from tests.bench.faults.fault import Fault
from tests.bench.faults.scene import Scene
from tests.faults.service import docker, pause, wait_for


def _next_attempt(scene: Scene, run_id: str, before: int) -> float:
    began = time.monotonic()
    wait_for(lambda: scene.service.run(run_id)["attempt"] > before, 30, "the next attempt")
    return time.monotonic() - began


def killed(scene: Scene, rng: random.Random) -> float | None:
    run_id = scene.run_until_somewhere(rng)
    run = scene.see(run_id)
    if run["status"] != "running":
        return None
    docker("kill", run["attempts"][-1]["container_name"])
    return _next_attempt(scene, run_id, run["attempt"])


FAULTS = [
    Fault("F5", "runner killed", 10, killed),
]
__all__ = ["FAULTS", "pause"]
