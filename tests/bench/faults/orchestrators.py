"""The orchestrator killed or stopped while runs run (F1, F3)."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from tests.bench.faults.fault import Fault
from tests.bench.faults.kinds import open_kinds
from tests.bench.faults.scene import ENDED, Scene
from tests.faults.service import wait_for

RUNS = 4
STOPPED_S = 60


def _under_way(scene: Scene, rng: random.Random) -> list[dict[str, Any]]:
    """Four runs, each at a random stage."""
    ids = [scene.submit(24) for _ in range(RUNS)]
    time.sleep(rng.uniform(0, 8))
    return [scene.see(run_id) for run_id in ids]


def _heard(scene: Scene, before: list[dict[str, Any]], since: float) -> float:
    """Seconds from `since` until every run has ended or its runner was heard after it."""
    began = time.monotonic()

    def heard(run_id: str) -> bool:
        run = scene.see(run_id)
        if run["status"] in ENDED:
            return True
        at = run["attempts"][-1]["last_event_at"] if run["attempts"] else None
        return run["status"] == "running" and at is not None and datetime.fromisoformat(at).timestamp() > since

    wait_for(lambda: all(heard(run["id"]) for run in before), 60, "every runner is heard again")
    return time.monotonic() - began


def _same_attempt(scene: Scene, before: list[dict[str, Any]]) -> None:
    for run in before:
        after = scene.service.wait_status(run["id"], "completed")
        if run["status"] == "running":
            assert after["attempt"] == run["attempt"], f"{run['id']} needed another attempt"


def killed(away_s: float) -> Callable[[Scene, random.Random], float | None]:
    def carry_out(scene: Scene, rng: random.Random) -> float | None:
        before = _under_way(scene, rng)
        scene.service.kill()
        time.sleep(away_s)
        scene.service.start()
        seconds = _heard(scene, before, time.time())
        _same_attempt(scene, before)
        return seconds

    return carry_out


def stopped(scene: Scene, rng: random.Random) -> float | None:
    before = _under_way(scene, rng)
    scene.service.signal(signal.SIGSTOP)
    time.sleep(STOPPED_S)
    scene.service.signal(signal.SIGCONT)
    seconds = _heard(scene, before, time.time())
    _same_attempt(scene, before)
    return seconds


KILLED = "orchestrator killed -9 under 4 runs, back after"
FAULTS = [
    Fault("F1", f"{KILLED} 2 s", 15, killed(2), alone=True, open=open_kinds),
    Fault("F1", f"{KILLED} 40 s", 15, killed(40), alone=True, open=open_kinds),
    Fault(
        "F3",
        "orchestrator stopped under 4 runs",
        30,
        stopped,
        alone=True,
        open=open_kinds,
    ),
]
