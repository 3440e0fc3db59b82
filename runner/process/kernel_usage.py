"""Reads the CPU and memory usage of this attempt from the kernel: from its own control group in a container, otherwise from
the runner's process tree. Standard library only, because it runs while everything large is being imported.
"""

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
PROC = Path("/proc")
NO_LIMIT = 1 << 60
EARLY_STEP_S = 0.05


@dataclass(frozen=True)
class Reading:
    cpu_s: float
    memory_bytes: int
    throttled_s: float | None = None


def reader(engine: str, cgroup: Path = CGROUP) -> Callable[[], Reading | None]:
    """Returns the function that reads usage here. Without a container, the control group is shared with other processes."""
    if engine != "process":
        for read in (_unified, _split):
            if read(cgroup) is not None:
                return lambda: read(cgroup)
    return Tree(os.getpid()).read


def since(read: Callable[[], Reading | None], before: Reading | None) -> Callable[[], Reading | None]:
    """Returns a reader whose counters start at `before`."""
    if before is None:
        return read

    def later() -> Reading | None:
        now = read()
        if now is None:
            return None
        held = None if now.throttled_s is None else now.throttled_s - (before.throttled_s or 0.0)
        return Reading(now.cpu_s - before.cpu_s, now.memory_bytes, held)

    return later


class Tree:
    """A process and its descendants. Ended processes can disappear from the kernel's sum, so increases are added up."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._seen = self._total = 0.0

    def read(self) -> Reading | None:
        reading = of_processes(self._first)
        if reading is None:
            return None
        self._total += max(0.0, reading.cpu_s - self._seen)
        self._seen = reading.cpu_s
        return Reading(self._total, reading.memory_bytes)


class EarlyUsage:
    """Readings `(age_s, reading)` of the start, taken in a thread while everything else loads."""

    def __init__(self, read: Callable[[], Reading | None], age: Callable[[], float]) -> None:
        self._read, self._age = read, age
        self._found: list[tuple[float, Reading]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> list[tuple[float, Reading]]:
        """Stops reading and returns the readings."""
        self._over.set()
        self._thread.join()
        return self._found

    def _watch(self) -> None:
        while True:
            if (reading := self._read()) is not None:
                self._found.append((self._age(), reading))
            if self._over.wait(EARLY_STEP_S):
                return


def process_age_s(proc: Path = PROC) -> float:
    """Returns the age of this process; 0 if the kernel does not report it."""
    fields, up = _text(proc / "self" / "stat").rpartition(")")[2].split(), _text(proc / "uptime").split()
    if len(fields) < 20 or not up:
        return 0.0
    return max(0.0, float(up[0]) - int(fields[19]) / os.sysconf("SC_CLK_TCK"))


def limits(engine: str, cgroup: Path = CGROUP) -> dict[str, float]:
    """Returns the container's limits, as far as the kernel reports them."""
    if engine == "process":
        return {}
    limits: dict[str, float] = {}
    quota, _, period = _text(cgroup / "cpu.max").strip().partition(" ")
    quota = quota or _text(cgroup / "cpu" / "cpu.cfs_quota_us").strip()
    period = period or _text(cgroup / "cpu" / "cpu.cfs_period_us").strip()
    if quota.isdecimal() and period.isdecimal() and int(period):
        limits["cpu_limit"] = round(int(quota) / int(period), 4)
    memory = (_text(cgroup / "memory.max") or _text(cgroup / "memory" / "memory.limit_in_bytes")).strip()
    if memory.isdecimal() and int(memory) < NO_LIMIT:
        limits["memory_limit_bytes"] = int(memory)
    return limits


def of_processes(first: int, proc: Path = PROC) -> Reading | None:
    """Returns the usage of a process and its descendants; ended processes count through their parents."""
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    rows: dict[int, tuple[int, int, int]] = {}
    for entry in os.listdir(proc):
        if entry.isdecimal():
            fields = _text(proc / entry / "stat").rpartition(")")[2].split()
            if len(fields) > 21:
                rows[int(entry)] = int(fields[1]), sum(map(int, fields[11:15])), int(fields[21]) * page
    ours = _descendants(first, {pid: row[0] for pid, row in rows.items()})
    if not ours:
        return None
    return Reading(sum(rows[pid][1] for pid in ours) / ticks, sum(rows[pid][2] for pid in ours))


def _descendants(first: int, parents: Mapping[int, int]) -> set[int]:
    ours = {first} & parents.keys()
    while grown := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= grown
    return ours


def _unified(cgroup: Path) -> Reading | None:
    """Control groups, version 2."""
    cpu, memory = read_pairs(cgroup / "cpu.stat"), _text(cgroup / "memory.current").strip()
    if "usage_usec" not in cpu or not memory.isdecimal():
        return None
    idle = read_pairs(cgroup / "memory.stat").get("inactive_file", 0)
    throttled = cpu.get("throttled_usec")
    return Reading(cpu["usage_usec"] / 1e6, max(0, int(memory) - idle), None if throttled is None else throttled / 1e6)


def _split(cgroup: Path) -> Reading | None:
    """Control groups, version 1."""
    used, memory = _text(cgroup / "cpuacct" / "cpuacct.usage"), _text(cgroup / "memory" / "memory.usage_in_bytes")
    if not used.strip().isdecimal() or not memory.strip().isdecimal():
        return None
    idle = read_pairs(cgroup / "memory" / "memory.stat").get("total_inactive_file", 0)
    throttled = read_pairs(cgroup / "cpu" / "cpu.stat").get("throttled_time")
    return Reading(int(used) / 1e9, max(0, int(memory) - idle), None if throttled is None else throttled / 1e9)


def read_pairs(path: Path) -> dict[str, int]:
    """Reads lines of a name and a number; empty if the file cannot be read."""
    lines = (line.split() for line in _text(path).splitlines())
    return {fields[0]: int(fields[1]) for fields in lines if len(fields) == 2 and fields[1].isdecimal()}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
