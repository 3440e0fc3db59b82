"""All descendants of a supervisor's child: finding, measuring and killing them, however fast they fork."""

import contextlib
import os
import signal
import stat
import time
from collections.abc import Callable

from runner.sandbox.kernel import syscalls

PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_STUBBORN_S = 10.0


def descendants(pid: int) -> list[int]:
    """Returns all descendants of a process, nearest first."""
    below: list[int] = []
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{one}/task"):
                with contextlib.suppress(OSError), open(f"/proc/{one}/task/{thread}/children", "rb") as file:
                    children = [int(child) for child in file.read().split()]
                    below += children
                    waiting += children
    return below


def resident_pages(pid: int) -> int:
    """Memory that a process occupies now; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1])
    except (OSError, IndexError):
        return 0


def peak_bytes(pid: int | str) -> int:
    """Peak memory of a process since its exec; 0 if it is gone."""
    try:
        fd = os.open(f"/proc/{pid}/status", os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = os.read(fd, 8192)
        finally:
            os.close(fd)
        at = text.index(b"VmHWM:")
        return int(text[at + 6 : text.index(b"kB", at)]) * 1024
    except (OSError, ValueError):
        return 0


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and of the children that it has waited for; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
        return sum(map(int, fields[11:15])) / _TICKS
    except (OSError, IndexError, ValueError):
        return 0.0


def as_user(uid: int, work: Callable[[], int]) -> int:
    """Runs `work` as a slot's user (-1: the current one) in a separate process; returns its result, below 126.

    The supervisor is root without the right to override file permissions, so only that user can clean up its files.
    """
    pid = os.fork()
    if pid == 0:
        code = 126
        with contextlib.suppress(BaseException):
            if uid >= 0:
                syscalls.become_user(uid)
            code = work()
        os._exit(code)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def kill_everything_of(uid: int) -> None:
    """Kills all processes of a user at once: the kernel locks its process list meanwhile, so no fork escapes."""

    def shoot() -> int:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        return 0

    as_user(uid, shoot)


def await_children(seconds: float) -> None:
    """Reaps the children of the calling process until there are none, or the time is over."""
    until = time.monotonic() + seconds
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < until:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.002)


def end_all_children(uid: int = -1) -> float:
    """Kills and reaps all descendants of the calling process; returns the CPU seconds that they had used."""
    used, until = 0.0, time.monotonic() + _STUBBORN_S
    while time.monotonic() < until:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return used
        if pid:
            used += usage.ru_utime + usage.ru_stime
            continue
        if uid >= 0:
            kill_everything_of(uid)
        else:
            _stop_and_kill()
        time.sleep(0.001)
    return used


def _stop_and_kill() -> None:
    """A stopped process cannot fork: stops all processes until no new ones appear, then kills them."""
    stopped: set[int] = set()
    while fresh := set(descendants(os.getpid())) - stopped:
        for pid in fresh:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGSTOP)
        stopped |= fresh
    for pid in stopped:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def empty(folder: str) -> int:
    """Removes everything in one's own folder, whatever its modes and depth; returns 0 if nothing is left.

    Nested folders are moved to the top, so that no path gets long and nothing recurses.
    """
    number = 0
    while entries := list(os.scandir(folder)):
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
                continue
            os.chmod(entry.path, stat.S_IRWXU)
            for inner in list(os.scandir(entry.path)):
                if inner.is_dir(follow_symlinks=False):
                    os.chmod(inner.path, stat.S_IRWXU)
                    number += 1
                    os.rename(inner.path, os.path.join(folder, f".{number}.{time.monotonic_ns()}"))
                else:
                    os.unlink(inner.path)
            os.rmdir(entry.path)
    return 0


def takes_more_than(folder: str, most: int) -> int:
    """Returns 1 if the files below a folder take up more space than `most`, or cannot be counted."""
    total = 0
    hidden: list[OSError] = []
    for path, folders, files in os.walk(folder, onerror=hidden.append):
        for name in (*folders, *files):
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(path, name)).st_blocks * 512 + 512
        if total > most:
            return 1
    return int(any(not isinstance(error, FileNotFoundError) for error in hidden))
