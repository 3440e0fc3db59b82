"""Watches one test of a running child by the kernel's clocks and has it ended when a limit is reached."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable

from runner.sandbox.pool.worker import GoneError

LONGEST_STRETCH = 10.0
"""A program that waits for a busy machine gets more wall time, up to this many times its limit."""
GRACE_S = 0.005
LINE_AGE_S = 0.2
"""How old a reading of the run queue wait may be when a test starts: short tests follow each other quickly."""


def cpu_seconds(pid: int) -> float | None:
    """CPU time of a process and all its threads, readable for any user id; None if it is gone."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return None


def seconds_in_line(pid: int, *, all_threads: bool = True) -> float:
    """How long the threads of a process were runnable and waited for a processor."""
    waited = 0
    if not all_threads:
        try:
            with open(f"/proc/{pid}/schedstat", "rb") as file:
                return int(file.read().split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat", "rb") as file:
                waited += int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return waited / 1e9


class Watchdog:
    """Watches one child. Each test is started, then stopped in time; otherwise `expire` is called, and `exceeded` says why.

    One timer serves all tests of the child: it checks the running test, and most are long over by then.
    """

    def __init__(
        self, pid: int, cpu_s: float, wall_s: float, expire: Callable[[], None], partner: int | None = None
    ) -> None:
        """`partner` is a process that this one waits for; its waits for a processor are not counted either."""
        self.exceeded: str | None = None
        self.cpu_before = 0.0
        """CPU seconds of the process before this test."""
        self._pids = (pid,) if partner is None else (pid, partner)
        self._pid, self._cpu_s, self._wall_s, self._expire = pid, cpu_s, wall_s, expire
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._cpu_now_s, self._wall_now_s = cpu_s, wall_s
        self._running = False
        self._started = self._line_read = -1.0
        self._line_before = 0.0
        self._cpu_after: float | None = None

    def start(self, most_s: tuple[float, float] | None = None) -> None:
        """Starts a test. Activity since the previous test counts for this one. `most_s`: CPU and wall seconds if they are to
        be less than the limits."""
        self._cpu_now_s, self._wall_now_s = self._cpu_s, self._wall_s
        if most_s is not None:
            self._cpu_now_s, self._wall_now_s = min(self._cpu_s, most_s[0]), min(self._wall_s, most_s[1])
        self.cpu_before = (cpu_seconds(self._pid) or 0.0) if self._cpu_after is None else self._cpu_after
        self._started = time.monotonic()
        if self._line_read < 0 and len(self._pids) == 1:
            self._line_read = self._started  # so far it has only waited for its job
        elif self._started - self._line_read > LINE_AGE_S:
            self._line_read = self._started
            self._line_before = sum(seconds_in_line(one, all_threads=False) for one in self._pids)
        self._running = True
        first_look_s = min(self._cpu_now_s, self._wall_now_s) + GRACE_S
        if self._timer is not None and most_s is not None and self._timer.when() > self._loop.time() + first_look_s:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_later(first_look_s, self._look)

    def stop(self) -> tuple[float, float | None]:
        """Ends a test; returns its wall and CPU seconds (CPU None if the process is gone)."""
        self._running = False
        wall, cpu = time.monotonic() - self._started, cpu_seconds(self._pid)
        self._cpu_after = cpu
        return wall, None if cpu is None else cpu - self.cpu_before

    def close(self) -> None:
        """Stops watching."""
        self._running = False
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        cpu = cpu_seconds(self._pid)
        if not self._running or cpu is None:
            return  # nothing to watch, or it has just ended, which whoever awaits it will notice
        used, passed = cpu - self.cpu_before, time.monotonic() - self._started
        cpu_s, wall_s = self._cpu_now_s, self._wall_now_s
        if used >= cpu_s:
            self._end("cpu")
        elif passed >= wall_s * LONGEST_STRETCH or passed - self._in_line() >= wall_s:
            self._end("wall")
        else:
            left = min(cpu_s - used, max(wall_s - passed, 0.05))
            self._timer = self._loop.call_later(left + GRACE_S, self._look)

    def _in_line(self) -> float:
        return max(0.0, sum(seconds_in_line(pid) for pid in self._pids) - self._line_before)

    def _end(self, why: str) -> None:
        self.exceeded = why
        with contextlib.suppress(GoneError):  # whoever awaits the child will notice
            self._expire()
