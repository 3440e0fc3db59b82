"""Faults at random moments, many times: how often every invariant held, and how long until the state was right again.

    .venv/bin/python -m tests.bench.faults [REPEATS] [FAULT ...]

Four runs at a time on one real service and engine; leases are shortened (5 s + 3 s) so that it ends in reasonable time.
The figures belong into docs/operations.md.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults import images
from tests.faults.invariants import log_replays, nothing_left, nothing_lost
from tests.faults.service import Service, docker, wait_for

AT_ONCE = 4
SETTINGS = {"demo_latency_s": 0.6, "lease_s": 5, "suspect_s": 3, "max_instances": AT_ONCE}


@dataclass
class Tally:
    """What became of one fault's repeats."""

    done: int = 0
    held: int = 0
    seconds: list[float] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


def attempt_after(service: Service, run_id: str, within_s: float) -> float:
    """Seconds until the next attempt is there."""
    began = time.monotonic()
    wait_for(lambda: service.run(run_id)["attempt"] == 2, within_s, "a second attempt")
    return time.monotonic() - began


def runner_killed(service: Service, run_id: str) -> float:
    docker("kill", service.container(run_id))
    return attempt_after(service, run_id, 20)


def container_removed(service: Service, run_id: str) -> float:
    docker("rm", "-f", service.container(run_id))
    return attempt_after(service, run_id, 20)


def container_paused(service: Service, run_id: str) -> float:
    docker("pause", service.container(run_id))
    return attempt_after(service, run_id, 30)


def cut_off_for_ever(service: Service, run_id: str) -> float:
    docker("network", "disconnect", "--force", service.network, service.container(run_id))
    return attempt_after(service, run_id, 30)


def cancelled(service: Service, run_id: str) -> float:
    began = time.monotonic()
    service.client.post(f"/api/container-runs/{run_id}/cancel")
    service.wait_status(run_id, "cancelled", "completed", within_s=20)
    wait_for(lambda: not service.containers(run_id, all_states=True), 20, "its container is gone")
    return time.monotonic() - began


CONTAINER_FAULTS: dict[str, Callable[[Service, str], float]] = {
    "F5 runner killed": runner_killed,
    "F6 container removed": container_removed,
    "F7 container paused": container_paused,
    "F8 runner cut off for ever": cut_off_for_ever,
    "F19 cancelled": cancelled,
}


def check(service: Service, run_id: str) -> dict[str, Any]:
    run = service.wait_status(run_id, "completed", "cancelled", within_s=120)
    if run["status"] == "completed":
        nothing_lost(service, run)
    log_replays(service, run)
    return run


def one(service: Service, fault: Callable[[Service, str], float], rng: random.Random, tally: Tally) -> None:
    tally.done += 1
    try:
        run_id = service.submit(sample_size=8, concurrency=2)
        service.wait_status(run_id, "running", within_s=60)
        time.sleep(rng.uniform(0, 4))
        if service.run(run_id)["status"] == "running":
            tally.seconds.append(fault(service, run_id))
        check(service, run_id)
        tally.held += 1
    except AssertionError as error:
        tally.troubles.append(str(error)[:300])


def container_fault(fault: Callable[[Service, str], float], repeats: int, service: Service) -> Tally:
    tally, rng = Tally(), random.Random(7)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda _: one(service, fault, rng, tally), range(repeats)))
    nothing_left(service, within_s=60)
    return tally


def orchestrator_killed(repeats: int, service: Service) -> Tally:
    """F1: killed with four runs under way at any stage, back after 2 s."""
    tally, rng = Tally(), random.Random(11)
    for _ in range(-(-repeats // AT_ONCE)):
        ids = [service.submit(sample_size=8, concurrency=2) for _ in range(AT_ONCE)]
        time.sleep(rng.uniform(0, 8))
        service.kill()
        time.sleep(2)
        service.start()
        began = time.monotonic()
        for run_id in ids:
            tally.done += 1
            try:
                check(service, run_id)
                tally.held += 1
            except AssertionError as error:
                tally.troubles.append(str(error)[:300])
        tally.seconds.append(time.monotonic() - began)
    nothing_left(service, within_s=60)
    return tally


def broken_runner(reason: str, repeats: int, service: Service) -> Tally:
    tally = Tally()
    ids = [service.submit(sample_size=2) for _ in range(repeats)]
    for run_id in ids:
        tally.done += 1
        try:
            run = service.wait_status(run_id, "failed", within_s=240)
            assert run["reason"] == reason, f"{run['reason']}: {run['error_message']}"
            log_replays(service, run)
            tally.held += 1
        except AssertionError as error:
            tally.troubles.append(str(error)[:300])
    nothing_left(service, within_s=60)
    return tally


def show(name: str, tally: Tally) -> None:
    times = f"median {statistics.median(tally.seconds):5.1f} s, worst {max(tally.seconds):5.1f} s" if tally.seconds else ""
    print(f"{name:28} {tally.held}/{tally.done} held  {times}", flush=True)
    for trouble in tally.troubles:
        print(f"    {trouble}", flush=True)


def with_service(work: Callable[[Service], Tally], **settings: object) -> Tally:
    with tempfile.TemporaryDirectory() as directory:
        service = Service(Path(directory) / "data", **{**SETTINGS, **settings})
        try:
            service.start()
            return work(service)
        finally:
            service.close()


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    wanted = sys.argv[2:]

    def asked(name: str) -> bool:
        return not wanted or any(name.startswith(each + " ") for each in wanted)

    if asked("F1 orchestrator killed"):
        show("F1 orchestrator killed", with_service(lambda s: orchestrator_killed(repeats, s)))
    for name, fault in CONTAINER_FAULTS.items():
        if asked(name):
            show(name, with_service(lambda s, fault=fault: container_fault(fault, repeats, s)))
    broken = {
        "F17 runner never claims": (images.build("never-claims", images.NEVER_CLAIMS), "start_timeout"),
        "F17 runner exits quietly": (images.build("exits-quietly", images.EXITS_QUIETLY), "protocol"),
        "F18 image missing": ("benchyard-test-no-such-image:latest", "image_missing"),
    }
    for name, (image, reason) in broken.items():
        if asked(name):
            work = with_service(
                lambda s, reason=reason: broken_runner(reason, repeats, s), runner_image=image, start_timeout_s=3
            )
            show(name, work)


if __name__ == "__main__":
    main()
