"""The last of a runner: it becomes a shell that reads the kernel's count of processor time once more and ends.

Giving back the runner's memory takes some ten milliseconds of its container's processor time, after the last moment at
which it could read anything itself. What the shell writes is the last line of the container's log, where the orchestrator
finds it. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from runner.kernel_usage import CGROUP

SHELL = "/bin/sh"
ACTION = "runner.gone"
_COUNTERS = {
    "cpu.stat": ("read -r _ used", 1e6),  # version 2: its first line is the one of the usage
    "cpuacct/cpuacct.usage": ("read -r used", 1e9),
}


@dataclass(frozen=True)
class Ended:
    """How a runner ended."""

    code: int
    before_s: float | None = None
    """What its container had used when its run began; None: there is nothing to count."""


def arguments(code: int, before_s: float, cgroup: Path = CGROUP) -> list[str] | None:
    """The shell that takes our place: it says what was used since the group had used `before_s`, and exits with `code`."""
    for name, (read, per_second) in _COUNTERS.items():
        if (cgroup / name).exists():
            start = json.dumps({"action": ACTION, "before_s": round(before_s, 6), "per_second": per_second, "used": None})
            head = start.removesuffix("null}")
            return [SHELL, "-c", f'{read} < "$2" && echo "$1$used}}" >&2; exit {code}', SHELL, head, str(cgroup / name)]
    return None


def end(ended: Ended) -> NoReturn:
    sys.stderr.flush()
    if ended.before_s is not None and (words := arguments(ended.code, ended.before_s)) is not None:
        with contextlib.suppress(OSError):  # no shell: what it would have counted is not counted
            os.execve(SHELL, words, {})  # noqa: S606 -- that is the point
    os._exit(ended.code)
