"""The line between runners and the service: lost, doubled, shuffled and cut (F13), and gone for a long time (F14)."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.bench.faults.fault import Fault
from tests.bench.faults.kinds import open_kinds
from tests.bench.faults.scene import ENDED, Scene
from tests.faults.service import wait_for

HOLE_S = 150


def faulty(scene: Scene, _: random.Random) -> float | None:
    """Answers lost after the commit, events doubled, reordered and missing, calls and downloads cut: one row each, and
    no attempt lost."""
    run_id = scene.submit(24, instance_type="faulty-line")
    run = scene.service.wait_status(run_id, "completed")
    assert run["attempt"] == 1, f"it needed {run['attempt']} attempts: {[each['reason'] for each in run['attempts']]}"
    stored = scene.rows("SELECT seq, type FROM events WHERE run_id = :run AND attempt = 1 AND seq IS NOT NULL", run=run_id)
    assert len({row["seq"] for row in stored}) == len(stored), "an event is stored twice"
    assert sum(row["type"] == "progress" for row in stored) == run["progress"]["done"]
    (attempt,) = scene.rows("SELECT last_seq FROM attempts WHERE run_id = :run", run=run_id)
    assert attempt["last_seq"] >= max(row["seq"] for row in stored)
    return None


@contextmanager
def black_hole(port: int) -> Iterator[None]:
    """Packets to this port vanish, as behind a firewall or a dead host: nobody is told."""
    rule = ["INPUT", "-p", "tcp", "--dport", str(port), "-j", "DROP"]
    subprocess.run(["iptables", "-I", *rule], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["iptables", "-D", *rule], check=True, capture_output=True)


def iptables_missing() -> str | None:
    with suppress(OSError):
        if subprocess.run(["iptables", "-S", "INPUT"], capture_output=True, check=False).returncode == 0:
            return None
    return "needs iptables and root"


def swallowed(scene: Scene, rng: random.Random, hole_s: float = HOLE_S, runs: int = 2) -> float | None:
    """The address that runners report to is down for much longer than leases and start time-outs: runs wait for it, and go
    on in their next attempt."""
    ids = [scene.running(rng, 2, sample_size=30)[0] for _ in range(runs)]
    with black_hole(scene.service.runner_port):
        time.sleep(hole_s)
        for run_id in ids:
            scene.see(run_id)
    began = time.monotonic()
    wait_for(lambda: all(scene.see(run_id)["status"] in (*ENDED, "running") for run_id in ids), 30, "every run runs again")
    seconds = time.monotonic() - began
    for run_id in ids:
        scene.service.wait_status(run_id, "completed")
    return seconds


FAULTS = [
    Fault("F13", "answers lost, events doubled, shuffled, missing", 1, faulty, open=open_kinds),
    Fault(
        "F14",
        "address for runners swallows everything",
        30,
        swallowed,
        alone=True,
        shortened=f"{HOLE_S} s of 10 min, start time-out 30 s of 120 s",
        needs=iptables_missing,
        open=open_kinds,
    ),
]
