"""Cold and warm start against plain `docker run`; many runs with and without a pool; costs against the kernel's figures.

    .venv/bin/python -m tests.bench.fleet [ROUNDS [RUNS]]

With 0 RUNS only starts are measured.

A start is the time from the moment before the client sends the POST of a run to the receipt of its runner's first event.
The goal for a warm runner is at most a tenth of the cold time. All three are measured alternately in one run, each
after a second of rest with a runner standing ready. The costs of
a run are compared with its container's control group as somebody else reads it, from outside: from its first to its last
process, or from the claim on if its runner stood ready; the goal is a difference of at most 2 %.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.kernel_usage import KernelUsage
from tests.bench.start import our_run, plain_run
from tests.faults.service import Service, wait_for

TYPE = "standard-2"
COST_ROUNDS = 5
REST_S = 1.0


def ready(service: Service, count: int, timeout_s: float = 60) -> None:
    """Wait until so many runners stand ready."""
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        pools: list[dict[str, Any]] = service.client.get("/api/fleet").json()["pools"]
        if sum(pool["ready"] for pool in pools) >= count:
            return
        time.sleep(0.1)
    raise TimeoutError(f"no runner stands ready: {pools}")


def many(service: Service, runs: int) -> float:
    """Seconds until so many small runs, all asked for at once, are completed."""
    began = time.monotonic()
    ids = [service.submit(sample_size=1, instance_type=TYPE) for _ in range(runs)]
    for run_id in ids:
        service.wait_status(run_id, "completed")
    return time.monotonic() - began


def costs(service: Service, problems: int, kernel: KernelUsage) -> tuple[float, float]:
    """How much more the service counts than the kernel, of processor and of memory."""
    run_id = service.submit(sample_size=problems, instance_type=TYPE, concurrency=2)
    service.wait_status(run_id, "completed")
    wait_for(lambda: service.run(run_id)["attempts"][0]["removed_at"], 30, "the container is removed")
    run = service.run(run_id)
    (attempt,) = run["attempts"]
    since = datetime.fromisoformat(attempt["claimed_at"]).timestamp() if attempt["facts"].get("stood_ready") else 0.0
    vcpu_s, gib_s = kernel.of(attempt["container_id"], since)
    return run["machine"]["vcpu_s"] / vcpu_s - 1, run["machine"]["gib_s"] / gib_s - 1


def all_costs(services: dict[str, Service]) -> None:
    with KernelUsage() as kernel:
        for name, problems in itertools.product(services, (3, 36)):
            differences = []
            for _ in range(COST_ROUNDS):
                if name == "warm":
                    ready(services["warm"], 1)
                differences.append(costs(services[name], problems, kernel))
            for figure, found in zip(("vCPU-seconds", "GiB-seconds"), zip(*differences, strict=True), strict=True):
                shown = ", ".join(f"{each:+.2%}" for each in found)
                print(f"{name}, {problems} problems: {figure} against the kernel's: {shown} (goal: within 2 %)", flush=True)


def main(rounds: int, runs: int) -> None:
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        services = {}
        for name, warm in {"cold": "{}", "warm": f'{{"{TYPE}": 1}}'}.items():
            services[name] = Service(Path(directory) / name, warm=warm, demo_latency_s=0.01)
            stack.callback(services[name].close)
            services[name].start()
        starts = {
            "docker run": plain_run,
            "cold": partial(our_run, services["cold"]),
            "warm": partial(our_run, services["warm"]),
        }
        times: dict[str, list[float]] = {name: [] for name in starts}
        our_run(services["cold"])
        for _ in range(rounds):
            for name, start in starts.items():
                ready(services["warm"], 1)
                time.sleep(REST_S)
                times[name].append(start())
        for name, values in times.items():
            print(f"{name:12} p50 {statistics.median(values) * 1000:7.1f} ms   worst {max(values) * 1000:7.1f} ms")
        share = statistics.median(times["warm"]) / statistics.median(times["cold"])
        print(f"warm against cold: {share:.3f} over {rounds} rounds (goal: at most 0.1)", flush=True)
        if not runs:
            return
        ready(services["warm"], 1)
        all_costs(services)
        for name, service in services.items():
            seconds = many(service, runs)
            print(f"{runs} runs, {name}: {seconds:.1f} s, {seconds / runs * 1000:.0f} ms each", flush=True)


if __name__ == "__main__":
    main(*(int(word) for word in (sys.argv[1:] + ["15", "50"][len(sys.argv) - 1 :])))
