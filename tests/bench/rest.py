"""What the orchestrator costs at rest, and how soon it is ready: a service with one demo run done, left alone.

    .venv/bin/python -m tests.bench.rest [--idle 30] [--starts 3]

Resident and proportional memory, threads, and processor seconds while nothing happens, beside a bare Python that has
imported what the service is built on (FastAPI, uvicorn, SQLModel) and does nothing: that is the floor. Then the time from
the start of the process to the first /readyz that says 200, with the database that is there already, beside the time in
which that bare Python imports the same. Runs are local processes, so that no engine's client counts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from tests.bench.pages import cpu_ms
from tests.faults.service import TOKEN, Service

FLOOR = "import fastapi, uvicorn, sqlmodel"
WAIT_S = 120.0
RUN = {"model_id": "demo-weak", "sample_size": 4}


def memory_mb(pid: int) -> dict[str, float]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    sizes = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines}
    return {name: sizes[name] for name in ("Rss", "Pss", "Anonymous")}


def threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def tell(what: str, pid: int, idle_s: float) -> None:
    used = cpu_ms(pid)
    time.sleep(idle_s)
    used = cpu_ms(pid) - used
    sizes = ", ".join(f"{name} {size:.0f} MB" for name, size in memory_mb(pid).items())
    print(f"{what:12} {sizes}, {threads(pid)} threads, {used / 1000:.2f} s of processor in {idle_s:.0f} s")


def one_demo_run(service: Service) -> None:
    with httpx.Client(base_url=service.url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
        run_id = client.post("/api/runs", json=RUN).raise_for_status().json()["run_id"]
        deadline = time.monotonic() + WAIT_S
        while client.get(f"/api/runs/{run_id}").json()["status"] not in ("completed", "failed"):
            if time.monotonic() > deadline:
                raise TimeoutError("the demo run did not end")
            time.sleep(0.5)
        for page in ("/", "/runs", f"/runs/{run_id}"):
            client.get(page).raise_for_status()


def ready_s(service: Service) -> tuple[float, float]:
    """Seconds on the clock and of the processor from the start of the process until it is ready."""
    began = time.monotonic()
    service.start()
    return time.monotonic() - began, cpu_ms(service.pid) / 1000


def import_s() -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", FLOOR], check=True)
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--idle", type=float, default=30)
    parser.add_argument("--starts", type=int, default=3)
    options = parser.parse_args()
    bare = subprocess.Popen([sys.executable, "-c", f"{FLOOR}; import time; time.sleep(600)"])
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        service = Service(Path(directory), engine="process")
        try:
            service.start()
            one_demo_run(service)
            time.sleep(5)
            tell("bare Python", bare.pid, 0)
            tell("service", service.pid, options.idle)
            starts, floors = [], []
            for _ in range(options.starts):
                service.stop()
                starts.append(ready_s(service))
                floors.append(import_s())
            wall, cpu = (statistics.median(column) for column in zip(*starts, strict=True))
            print(f"ready after  {wall:.2f} s (processor {cpu:.2f} s); the bare imports {statistics.median(floors):.2f} s")
        finally:
            service.stop()
            bare.kill()
            bare.wait()


if __name__ == "__main__":
    main()
