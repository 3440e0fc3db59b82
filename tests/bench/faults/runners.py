"""Runners that do not do what they should, and containers that cannot be started (F16 to F18)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from tests.bench.faults.fault import Fault
from tests.bench.faults.kinds import open_kinds
from tests.bench.faults.scene import Scene
from tests.faults import images
from tests.faults.service import docker, wait_for

START_S, DEADLINE_S = 30, 6


def _seconds(earlier: str | float, later: str) -> float:
    began = earlier if isinstance(earlier, float) else datetime.fromisoformat(earlier).timestamp()
    return datetime.fromisoformat(later).timestamp() - began


def _failed(scene: Scene, reason: str, attempts: int, **fields: Any) -> dict[str, Any]:
    run = scene.service.wait_status(scene.submit(2, **fields), "failed")
    assert [each["reason"] for each in run["attempts"]] == [reason] * attempts, run["attempts"]
    assert run["reason"] == reason
    return run


def dies(reason: str, **fields: Any) -> Callable[[Scene, random.Random], float | None]:
    """The container ends by itself: seconds until that is recorded, the longest of three attempts."""

    def carry_out(scene: Scene, rng: random.Random) -> float | None:
        time.sleep(rng.uniform(0, 1))
        run = _failed(scene, reason, 3, **fields)
        died = scene.containers.died[run["id"]]
        pairs = zip(died, run["attempts"], strict=True)
        return max(_seconds(at, attempt["ended_at"]) for at, attempt in pairs)

    return carry_out


def never_claims(scene: Scene, rng: random.Random) -> float | None:
    time.sleep(rng.uniform(0, 1))
    run = _failed(scene, "start_timeout", 3, instance_type="never-claims")
    return max(_seconds(each["dispatched_at"], each["ended_at"]) for each in run["attempts"])


def only_heartbeats(scene: Scene, rng: random.Random) -> float | None:
    time.sleep(rng.uniform(0, 1))
    run = _failed(scene, "deadline", 1, deadline_s=DEADLINE_S, instance_type="hangs")
    return _seconds(run["started_at"], run["completed_at"])


def image_missing(scene: Scene, rng: random.Random) -> float | None:
    time.sleep(rng.uniform(0, 1))
    run = scene.service.wait_status(scene.submit(2), "failed")
    assert run["reason"] == "image_missing"
    return _seconds(run["created_at"], run["completed_at"])


def name_taken(scene: Scene, rng: random.Random) -> float | None:
    """A container of somebody else has the name that the next attempt needs: it is left alone, the one after it works."""
    run_id, run = scene.running(rng)
    name = f"benchyard-run-{run_id}-a{run['attempt'] + 1}"
    docker("create", "--name", name, images.RUNNER)
    try:
        docker("kill", run["attempts"][-1]["container_name"])
        began = time.monotonic()
        wait_for(lambda: scene.see(run_id)["attempt"] > run["attempt"] + 1, 20, "the attempt after the next")
        seconds = time.monotonic() - began
        run = scene.service.wait_status(run_id, "completed")
        assert "name_taken" in [each["reason"] for each in run["attempts"]], run["attempts"]
        assert docker("inspect", "--format", "{{.State.Status}}", name) == "created"
        return seconds
    finally:
        docker("rm", "-f", name)


FAULTS = [
    Fault("F16", "runner larger than its instance type", 10, dies("out_of_memory", instance_type="tiny"), open=open_kinds),
    Fault(
        "F17",
        "runner never claims",
        START_S + 15,
        never_claims,
        shortened=f"start time-out {START_S} s of 120 s",
        open=open_kinds,
    ),
    Fault("F17", "runner exits 0 at once", 15, dies("protocol", instance_type="exits-quietly"), open=open_kinds),
    Fault(
        "F17",
        "runner hangs with heartbeats",
        DEADLINE_S + 15,
        only_heartbeats,
        shortened=f"deadline {DEADLINE_S} s",
        open=open_kinds,
    ),
    Fault("F18", "image missing", 20, image_missing, settings={"runner_image": "benchyard-test-no-such-image:latest"}),
    Fault("F18", "name taken by a foreign container", 20, name_taken, open=open_kinds),
]
