"""Cold and warm start against plain `docker run`; many runs with and without a pool; costs against the kernel's figures.

    .venv/bin/python -m tests.bench.fleet [ROUNDS [RUNS]]

A start is the time from the POST of a run to the receipt of its runner's first event. The goal for a warm runner is at
most a tenth of the cold time. All three are measured alternately in one run. The costs of a run are compared with its
container's control group as somebody else reads it, from outside; the goal is a difference of at most 2 %.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.bench.kernel_usage import KernelUsage
from tests.bench.start import our_run, plain_run
from tests.faults.service import Service

TYPE = "standard-2"
COST_ROUNDS = 5


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


def costs(service: Service, problems: int) -> tuple[float, float]:
    """How much more the service counts than the kernel, of processor and of memory."""
    run_id = service.submit(sample_size=problems, instance_type=TYPE, concurrency=2)
    kernel = KernelUsage(service.container(run_id))
    kernel.start()
    machine = service.wait_status(run_id, "completed")["machine"]
    kernel.join(30)
    return machine["vcpu_s"] / kernel.vcpu_s - 1, machine["gib_s"] / kernel.gib_s - 1


def main(rounds: int, runs: int) -> None:
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        services = {}
        for name, warm in {"cold": "{}", "warm": f'{{"{TYPE}": 1}}'}.items():
            services[name] = Service(Path(directory) / name, warm=warm, demo_latency_s=0.01)
            stack.callback(services[name].close)
            services[name].start()
        times: dict[str, list[float]] = {"docker run": [], "cold": [], "warm": []}
        our_run(services["cold"])
        for _ in range(rounds):
            times["docker run"].append(plain_run())
            times["cold"].append(our_run(services["cold"]))
            ready(services["warm"], 1)
            times["warm"].append(our_run(services["warm"]))
        for name, values in times.items():
            print(f"{name:12} p50 {statistics.median(values) * 1000:7.1f} ms   worst {max(values) * 1000:7.1f} ms")
        share = statistics.median(times["warm"]) / statistics.median(times["cold"])
        print(f"warm against cold: {share:.3f} over {rounds} rounds (goal: at most 0.1)")
        for problems in (3, 36):
            differences = [costs(services["cold"], problems) for _ in range(COST_ROUNDS)]
            for name, found in zip(("vCPU-seconds", "GiB-seconds"), zip(*differences, strict=True), strict=True):
                shown = ", ".join(f"{each:+.2%}" for each in found)
                print(f"{problems} problems: {name} against the kernel's: {shown} (goal: within 2 %)")
        for name, service in services.items():
            seconds = many(service, runs)
            print(f"{runs} runs, {name}: {seconds:.1f} s, {seconds / runs * 1000:.0f} ms each")


if __name__ == "__main__":
    main(*(int(word) for word in (sys.argv[1:] + ["15", "50"][len(sys.argv) - 1 :])))
