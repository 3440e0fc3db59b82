"""The exit of a runner: it execs a shell that reads the kernel's CPU counter and clock once more, then exits.

Freeing the runner's memory takes about ten milliseconds of the container's CPU time, after the last moment at which the
runner could measure anything itself, and an engine reports the end of a container with a delay. The shell writes the last
line of the container's log, where the orchestrator reads it. Standard library only.
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
    "cpu.stat": ("read -r _ used", 1e6),  # version 2: the first line is the usage
    "cpuacct/cpuacct.usage": ("read -r used", 1e9),
}


@dataclass(frozen=True)
class CountedSince:
    """The point from which this container's usage counts for the run."""

    began_s: float
    """Seconds since the machine booted."""
    before_s: float = 0.0
    """CPU time that the container had used by then."""

    @classmethod
    def seconds_ago(cls, age_s: float, before_s: float = 0.0) -> Self:
        return cls(time.clock_gettime(time.CLOCK_BOOTTIME) - age_s, before_s)


@dataclass(frozen=True)
class RunnerExit:
    code: int
    counted: CountedSince | None = None
    """None if there is nothing to count."""


def arguments(code: int, counted: CountedSince, cgroup: Path = CGROUP) -> list[str] | None:
    """Returns the command line of the shell that replaces the runner: it writes the total usage and the time, and exits
    with `code`. None if there is no CPU counter."""
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
    if ended.counted is not None and (command := arguments(ended.code, ended.counted)) is not None:
        with contextlib.suppress(OSError):  # no shell: the last usage is not counted
            os.execve(SHELL, command, {})  # noqa: S606 -- that is the point
    os._exit(ended.code)
