"""What containers use, read from outside by nobody but the kernel: their control groups, many times a second."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

CGROUP = Path("/sys/fs/cgroup")
GIB = float(1 << 30)
STEP_S = 0.005
PLACES = ("docker/*", "system.slice/docker-*.scope")


class Point(NamedTuple):
    at: float
    cpu_s: float
    memory_bytes: int


class KernelUsage:
    """Use `with`: of every container that there is meanwhile, from the moment that its control group is there until none of
    its processes is left. Memory that is charged to the empty group until its removal is nobody's use; its processor time is
    that of the last process's end."""

    def __init__(self) -> None:
        self._split = (CGROUP / "cpuacct").exists()
        self._found: dict[str, list[Point]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> KernelUsage:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def of(self, container_id: str, since: float = 0.0) -> tuple[float, float]:
        """vCPU-seconds and GiB-seconds of a container that is gone, from the time `since` on."""
        (points,) = (points for group, points in self._found.items() if container_id in group)
        earlier = [point.cpu_s for point in points if point.at <= since]
        later = [point for point in points if point.at > since]
        before = later[0]._replace(at=since) if earlier else later[0]
        full = [before, *(point for point in later if point.memory_bytes)]
        held = sum((b.at - a.at) * (a.memory_bytes + b.memory_bytes) / 2 for a, b in pairwise(full))
        return later[-1].cpu_s - (earlier[-1] if earlier else 0.0), held / GIB

    def _watch(self) -> None:
        while not self._over.wait(STEP_S):
            for group in self._groups():
                points = self._found.setdefault(group, [])
                if (point := self._read(group)) is not None:
                    points.append(point)

    def _groups(self) -> set[str]:
        root = CGROUP / "memory" if self._split else CGROUP
        return {str(path.relative_to(root)) for place in PLACES for path in root.glob(place) if path.is_dir()}

    def _read(self, group: str) -> Point | None:
        """None while the group is being made or removed; without memory if it has no process."""
        try:
            if self._split:
                memory = CGROUP / "memory" / group
                files = CGROUP / "cpuacct" / group / "cpuacct.usage", memory / "memory.usage_in_bytes"
            else:
                memory = CGROUP / group
                files = memory / "cpu.stat", memory / "memory.current"
            at = time.time()
            if not (memory / "cgroup.procs").read_text():
                return Point(at, _cpu_s(files[0]), 0)
            return Point(at, _cpu_s(files[0]), int(files[1].read_text()) - _inactive_file(memory / "memory.stat"))
        except (OSError, ValueError):
            return None


def _cpu_s(path: Path) -> float:
    text = path.read_text()
    return int(text) / 1e9 if path.name == "cpuacct.usage" else int(text.split()[1]) / 1e6


def _inactive_file(path: Path) -> int:
    found = dict(line.split() for line in path.read_text().splitlines())
    return int(found.get("total_inactive_file", found.get("inactive_file", "0")))
