"""Faults of containers: killed, removed, paused, cut off (F5 to F8)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from tests.bench.faults.fault import Fault
from tests.bench.faults.kinds import open_kinds
from tests.bench.faults.scene import ENDED, Scene
from tests.faults.service import docker, pause, wait_for

AFTER_LEASES_S = 75
CUT_OFF_S = 20


def next_attempt(scene: Scene, run_id: str, before: int) -> float:
    """Seconds until another attempt than this one runs."""
    began = time.monotonic()

    def runs() -> bool:
        run = scene.service.run(run_id)
        return run["attempt"] > before and run["status"] in ("running", *ENDED)

    wait_for(runs, 90, "the next attempt runs")
    return time.monotonic() - began


def struck(strike: Callable[[Scene, str], object], reason: str) -> Callable[[Scene, random.Random], float | None]:
    """Harm to the container of a run at a random moment: the next attempt goes on, finished items are kept."""

    def carry_out(scene: Scene, rng: random.Random) -> float | None:
        run_id, run = scene.running(rng)
        strike(scene, run["attempts"][-1]["container_name"])
        seconds = next_attempt(scene, run_id, run["attempt"])
        ended = scene.service.run(run_id)["attempts"][run["attempt"] - 1]
        assert ended["reason"] == reason, f"the attempt ended as {ended['reason']}"
        return seconds

    return carry_out


def cut_off(scene: Scene, name: str) -> None:
    docker("network", "disconnect", "--force", scene.service.network, name)


def cut_off_for_a_while(scene: Scene, rng: random.Random) -> float | None:
    """Its backlog is delivered afterwards; the attempt is the same."""
    run_id, run = scene.running(rng)
    container = run["attempts"][-1]["container_name"]
    cut_off(scene, container)
    time.sleep(CUT_OFF_S)
    before = scene.see(run_id)["progress"]["done"]
    docker("network", "connect", scene.service.network, container)
    began = time.monotonic()
    wait_for(lambda: scene.see(run_id)["progress"]["done"] > before, 75, "its backlog is delivered")
    seconds = time.monotonic() - began
    run = scene.service.wait_status(run_id, "completed")
    assert run["attempt"] == 1, "it needed another attempt"
    return seconds


FAULTS = [
    Fault("F5", "runner killed", 10, struck(lambda _, name: docker("kill", name), "container_gone"), open=open_kinds),
    Fault(
        "F6", "container removed", 10, struck(lambda _, name: docker("rm", "-f", name), "container_gone"), open=open_kinds
    ),
    Fault(
        "F7",
        "container paused",
        AFTER_LEASES_S,
        struck(lambda _, name: pause(name), "heartbeat_lost"),
        open=open_kinds,
    ),
    Fault("F8", "runner cut off for 20 s", 75, cut_off_for_a_while, open=open_kinds),
    Fault(
        "F8",
        "runner cut off for ever",
        AFTER_LEASES_S,
        struck(cut_off, "heartbeat_lost"),
        open=open_kinds,
    ),
]
