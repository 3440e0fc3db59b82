"""Exports and the archive of a run against its number of results: time, and memory above what the service had before."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.bench.growth.curve import Curve, measured, sizes
from tests.faults.service import Service
from tests.stored_runs import Stored, fill

FORMATS = ("jsonl", "csv", "json", "parquet", "junit", "inspect")
ANSWER = "x = 1\n" * 300


def measure(largest: int) -> list[Curve]:
    times = Curve("downloads", "Exports and archive of a run", "results of the run", "ms of processor", work=True)
    memory = Curve("memory", "Memory for an export or archive", "results of the run", "MB above the start", work=False)
    for size in sizes(10, largest, 10_000):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
            data = Path(directory)
            (run_id, _) = fill(data, 1, Stored(items_per_run=size, answer=ANSWER))
            service = Service(data, engine="process", reconcile_s=3600)
            try:
                service.start()
                paths = {form: f"/api/container-runs/{run_id}/export?format={form}" for form in FORMATS}
                paths["archive"] = f"/api/container-runs/{run_id}/archive"
                before = _memory_mb(service.pid, "VmRSS")
                Path(f"/proc/{service.pid}/clear_refs").write_text("5")  # the peak is counted from now on
                for name, path in paths.items():
                    with measured(service.pid) as cost:
                        _download(service, path)
                    times.add(name, size, cost.cpu_ms, cost.clock_ms)
                memory.add("largest at any time", size, _memory_mb(service.pid, "VmHWM") - before)
                memory.add("held afterwards", size, max(0.1, _memory_mb(service.pid, "VmRSS") - before))
            finally:
                service.close()
    return [times, memory]


def _download(service: Service, path: str) -> None:
    with service.client.stream("GET", path) as answer:
        assert answer.status_code == 200, (path, answer.read()[:300])
        assert sum(map(len, answer.iter_bytes())) > 0


def _memory_mb(pid: int, field: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0]) / 1024
