"""The kernel's counters around one repeat: CPU time and memory of the container, and its out-of-memory kills."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from runner.process.kernel_usage import CGROUP, Reading, limits, read_pairs, reader
from runner.sandbox.kernel import process_tree

KILLED = {"memory.events": "oom_kill", "memory/memory.oom_control": "oom_kill"}
LOOK_S, RAREST_LOOK_S = 0.05, 0.5
OCCUPIED = {"memory.stat": ("anon", "shmem"), "memory/memory.stat": ("total_rss", "total_shmem")}


class Counters:
    """Counters of a container; without one, only the caller's descendants are measured."""

    def __init__(self, engine: str, cgroup: Path = CGROUP) -> None:
        self._alone = engine != "process"
        self._cgroup = cgroup
        self._read: Callable[[], Reading | None] = reader(engine, cgroup)
        share = limits(engine, cgroup).get("cpu_limit", 1.0)
        self.look_s = min(RAREST_LOOK_S, max(LOOK_S, LOOK_S / (2 * share)))
        """Seconds between memory readings: each takes 0.1 ms of the container's own CPU quota."""

    def read(self) -> Reading | None:
        """Returns None if there is no container or its counters cannot be read."""
        return self._read() if self._alone else None

    def own_cpu_s(self) -> float:
        """CPU time of the runner itself: this process and its parent."""
        return time.process_time() + process_tree.cpu_seconds(os.getppid())

    def occupied_bytes(self) -> int:
        """Memory of programs, without the page cache."""
        if self._alone:
            for name, parts in OCCUPIED.items():
                counters = read_pairs(self._cgroup / name)
                if parts[0] in counters:
                    return sum(counters.get(part, 0) for part in parts)
        return sum(process_tree.resident_pages(pid) for pid in process_tree.descendants(os.getpid())) * process_tree.PAGE

    def killed_for_memory(self) -> int:
        """How many processes the kernel has killed so far because memory ran out."""
        if not self._alone:
            return 0
        return max(read_pairs(self._cgroup / name).get(word, 0) for name, word in KILLED.items())
