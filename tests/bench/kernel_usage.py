"""What a container uses, read from outside by nobody but the kernel: its control group, many times a second."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from tests.faults.service import docker

CGROUP = Path("/sys/fs/cgroup")
GIB = float(1 << 30)
STEP_S = 0.02


class KernelUsage(threading.Thread):
    """From the moment that its control group is there until it is gone."""

    def __init__(self, container: str) -> None:
        super().__init__(daemon=True)
        self._id = docker("inspect", "--format", "{{.Id}}", container)
        self.vcpu_s = 0.0
        self.gib_s = 0.0

    def run(self) -> None:
        cpu, memory, stat = _files(self._id)
        before = time.monotonic()
        while True:
            try:
                if not (memory.parent / "cgroup.procs").read_text():
                    return  # all have ended; what is charged until the group is removed is nobody's use
                self.vcpu_s = _cpu_s(cpu)
                used = int(memory.read_text()) - _inactive_file(stat)
            except (OSError, ValueError):
                return
            now = time.monotonic()
            self.gib_s += (now - before) * used / GIB
            before = now
            time.sleep(STEP_S)


def _files(container_id: str) -> tuple[Path, Path, Path]:
    if (CGROUP / "cpuacct").exists():  # version 1
        own = CGROUP / "memory" / "docker" / container_id
        return (
            CGROUP / "cpuacct" / "docker" / container_id / "cpuacct.usage",
            own / "memory.usage_in_bytes",
            own / "memory.stat",
        )
    (own,) = CGROUP.rglob(f"*{container_id}*")
    return own / "cpu.stat", own / "memory.current", own / "memory.stat"


def _cpu_s(path: Path) -> float:
    text = path.read_text()
    return int(text) / 1e9 if path.name == "cpuacct.usage" else int(text.split()[1]) / 1e6


def _inactive_file(path: Path) -> int:
    found = dict(line.split() for line in path.read_text().splitlines())
    return int(found.get("total_inactive_file", found.get("inactive_file", "0")))
