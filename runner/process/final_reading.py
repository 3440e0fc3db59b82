"""The last of a runner: it becomes a shell that reads the kernel's count of processor time and its clock once more and ends.

Giving back the runner's memory takes some ten milliseconds of its container's processor time, after the last moment at
which it could read anything itself, and an engine tells the end of a container later than it is. What the shell writes
is the last line of the container's log, where the orchestrator finds it. Standard library only.
"""

import contextlib
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Self

from runner.process.kernel_usage import CGROUP

SHELL = "/bin/sh"
ACTION = "runner.gone"
UPTIME = "/proc/uptime"
_COUNTERS = {
    "cpu.stat": ("read -r _ used", 1e6),  # version 2: its first line is the one of the usage
    "cpuacct/cpuacct.usage": ("read -r used", 1e9),
}


@dataclass(frozen=True)
class CountedSince:
    """Since when this container's use is the run's."""

    began_s: float
    """By the machine's clock since its boot."""
    before_s: float = 0.0
    """The processor time that the container had used by then."""

    @classmethod
    def seconds_ago(cls, age_s: float, before_s: float = 0.0) -> Self:
        return cls(time.clock_gettime(time.CLOCK_BOOTTIME) - age_s, before_s)


@dataclass(frozen=True)
class RunnerExit:
    """How a runner ended."""

    code: int
    counted: CountedSince | None = None
    """None: there is nothing to count."""


def arguments(code: int, counted: CountedSince, cgroup: Path = CGROUP) -> list[str] | None:
    """The shell that takes our place: it says what was used in all and when, and exits with `code`."""
    for name, (read, per_second) in _COUNTERS.items():
        if (cgroup / name).exists():
            began, before = round(counted.began_s, 3), round(counted.before_s, 6)
            line = json.dumps({"action": ACTION, "began_s": began, "before_s": before, "per_second": per_second})
            say = r'echo "$1, \"at_s\": $up, \"used\": $used}" >&2'
            script = f'{read} < "$2" && read -r up _ < {UPTIME} && {say}; exit {code}'
            return [SHELL, "-c", script, SHELL, line.removesuffix("}"), str(cgroup / name)]
    return None


def end(ended: RunnerExit) -> NoReturn:
    sys.stderr.flush()
    if ended.counted is not None and (words := arguments(ended.code, ended.counted)) is not None:
        with contextlib.suppress(OSError):  # no shell: what it would have counted is not counted
            os.execve(SHELL, words, {})  # noqa: S606 -- that is the point
    os._exit(ended.code)
