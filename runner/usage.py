"""What this attempt uses of processor and memory, read from the kernel: from its own control group in a container, else
from the processes that descend from the runner. Standard library only, apart from the contract.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from runner.contract import UsageSample

CGROUP = Path("/sys/fs/cgroup")
PROC = Path("/proc")
NO_LIMIT = 1 << 60
FIRST_STEP_S, LAST_STEP_S = 1.0, 30.0
STEPS_AT_ONCE = 60
MAX_WAITING = 200


@dataclass(frozen=True)
class Reading:
    cpu_s: float
    memory_bytes: int
    throttled_s: float | None = None


class UsageLog:
    """Samples that have not been acknowledged yet: often at first, seldom in a long run, never more than a few hundred."""

    def __init__(
        self, read: Callable[[], Reading | None], clock: Callable[[], float] = time.monotonic, *, age_s: float = 0.0
    ) -> None:
        """`age_s`: how long what is measured has lived already."""
        self._read, self._clock = read, clock
        self._began = clock() - age_s
        self._waiting: deque[UsageSample] = deque()

    @property
    def step_s(self) -> float:
        """How long to wait for the next sample."""
        return min(max((self._clock() - self._began) / STEPS_AT_ONCE, FIRST_STEP_S), LAST_STEP_S)

    def take(self) -> None:
        """Add a sample; what cannot be read is left out."""
        reading = self._read()
        if reading is None:
            return
        throttled = None if reading.throttled_s is None else round(reading.throttled_s, 3)
        self._waiting.append(
            UsageSample(
                at_s=round(self._clock() - self._began, 2),
                cpu_s=round(reading.cpu_s, 3),
                memory_bytes=reading.memory_bytes,
                throttled_s=throttled,
            )
        )
        if len(self._waiting) > MAX_WAITING:
            self._waiting = deque(list(self._waiting)[1::2])

    def waiting(self) -> list[UsageSample]:
        return list(self._waiting)

    def sent(self, samples: list[UsageSample]) -> None:
        """They are stored: forget them."""
        while samples and self._waiting and self._waiting[0].at_s <= samples[-1].at_s:
            self._waiting.popleft()


def reader(engine: str, cgroup: Path = CGROUP) -> Callable[[], Reading | None]:
    """How usage is read here. A process without a container shares its control group with others."""
    if engine != "process":
        for read in (_unified, _split):
            if read(cgroup) is not None:
                return lambda: read(cgroup)
    return Tree(os.getpid()).read


class Tree:
    """A process and those that descend from it. What ended unseen is gone from the kernel's sum, so growth is counted."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._seen = self._total = 0.0

    def read(self) -> Reading | None:
        found = of_processes(self._first)
        if found is None:
            return None
        self._total += max(0.0, found.cpu_s - self._seen)
        self._seen = found.cpu_s
        return Reading(self._total, found.memory_bytes)


def process_age_s(proc: Path = PROC) -> float:
    """How long this process has lived; 0 where the kernel does not say."""
    fields, up = _text(proc / "self" / "stat").rpartition(")")[2].split(), _text(proc / "uptime").split()
    if len(fields) < 20 or not up:
        return 0.0
    return max(0.0, float(up[0]) - int(fields[19]) / os.sysconf("SC_CLK_TCK"))


def limits(engine: str, cgroup: Path = CGROUP) -> dict[str, float]:
    """What the kernel allows this container, as far as it says so."""
    if engine == "process":
        return {}
    found: dict[str, float] = {}
    quota, _, period = _text(cgroup / "cpu.max").strip().partition(" ")
    quota = quota or _text(cgroup / "cpu" / "cpu.cfs_quota_us").strip()
    period = period or _text(cgroup / "cpu" / "cpu.cfs_period_us").strip()
    if quota.isdecimal() and period.isdecimal() and int(period):
        found["cpu_limit"] = round(int(quota) / int(period), 4)
    memory = (_text(cgroup / "memory.max") or _text(cgroup / "memory" / "memory.limit_in_bytes")).strip()
    if memory.isdecimal() and int(memory) < NO_LIMIT:
        found["memory_limit_bytes"] = int(memory)
    return found


def of_processes(first: int, proc: Path = PROC) -> Reading | None:
    """Of a process and all that descend from it; those that ended count through their parents."""
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
    cpu, memory = _pairs(cgroup / "cpu.stat"), _text(cgroup / "memory.current").strip()
    if "usage_usec" not in cpu or not memory.isdecimal():
        return None
    idle = _pairs(cgroup / "memory.stat").get("inactive_file", 0)
    throttled = cpu.get("throttled_usec")
    return Reading(cpu["usage_usec"] / 1e6, max(0, int(memory) - idle), None if throttled is None else throttled / 1e6)


def _split(cgroup: Path) -> Reading | None:
    """Control groups, version 1."""
    used, memory = _text(cgroup / "cpuacct" / "cpuacct.usage"), _text(cgroup / "memory" / "memory.usage_in_bytes")
    if not used.strip().isdecimal() or not memory.strip().isdecimal():
        return None
    idle = _pairs(cgroup / "memory" / "memory.stat").get("total_inactive_file", 0)
    throttled = _pairs(cgroup / "cpu" / "cpu.stat").get("throttled_time")
    return Reading(int(used) / 1e9, max(0, int(memory) - idle), None if throttled is None else throttled / 1e9)


def _pairs(path: Path) -> dict[str, int]:
    lines = (line.split() for line in _text(path).splitlines())
    return {each[0]: int(each[1]) for each in lines if len(each) == 2 and each[1].isdecimal()}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
