"""Supervises one program of the process engine until it ends, and records how. A script; its argument is a directory.

It is a separate process, so that the program and the record of its end survive the orchestrator. It uses only the standard
library and none of our modules, because it must start fast. The program inherits its standard input, with the boot line. It
reads `order.json` (command, environment, limits) and writes `running.json`, `log`, `log.1` and, last of all, `exit.json`.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import sys
import time
from typing import Any

LOG_BYTES = 512 * 1024
LOOK_S = 0.5
ALREADY = 3  #: exit code: another supervisor has this program
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LINUX = sys.platform.startswith("linux")


def prctl(option: int, value: int) -> None:
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def write(name: str, value: dict[str, Any]) -> None:
    """Atomic."""
    with open(f"{name}.tmp", "w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{name}.tmp", name)


def descendants(root: int) -> list[int]:
    """Every process below `root`, nearest first. Empty without /proc."""
    found: list[int] = []
    queue = [root]
    while queue and LINUX:
        below = children_of(queue.pop(0))
        found += below
        queue += below
    return found


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                found += [int(number) for number in file.read().split()]
    return found


def birth_of(pid: int) -> str | None:
    """Distinguishes a process from a later one with the same pid; None if there is none. Empty without /proc."""
    if not LINUX:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, 0)
            return ""
        return None
    with contextlib.suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return None if fields[0] in "ZX" else f"{boot}:{fields[19]}"
    return None


def memory_of(pids: list[int]) -> int:
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/status", encoding="utf-8") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith(("RssAnon:", "RssShmem:")))
    return total * 1024


class Log:
    """The last part of the program's output: two files of bounded size."""

    def __init__(self) -> None:
        self.file = open("log", "wb", buffering=0)  # noqa: SIM115 -- open as long as the process lives

    def take(self, text: bytes) -> None:
        with contextlib.suppress(OSError):  # a full disk must not end the program
            if self.file.tell() + len(text) > LOG_BYTES:
                os.replace("log", "log.1")
                self.file.close()
                self.file = open("log", "wb", buffering=0)  # noqa: SIM115
            self.file.write(text)


def start(order: dict[str, Any], output: int) -> int:
    """Start the program in its own session; the kernel kills it if this supervisor dies."""
    keeper = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(137)
        os.dup2(output, 1)
        os.dup2(output, 2)
        for name, value in order["limits"].items():
            hard = resource.getrlimit(getattr(resource, name))[1]
            bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(getattr(resource, name), (bound, bound))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(order["work"])
        os.execvpe(order["command"][0], order["command"], order["environment"])  # noqa: S606
    except BaseException as error:
        os.write(2, f"cannot start: {error}\n".encode())
        os._exit(127)


def keep(order: dict[str, Any], child: int, output: int, woken: int, log: Log) -> tuple[int, bool]:
    """Wait until the program ends. Returns its wait status, and whether it was killed for its memory use."""
    oom = False
    look_at = 0.0
    sources = [output, woken]
    while True:
        ready, _, _ = select.select(sources, [], [], LOOK_S)
        if woken in ready:
            os.read(woken, 4096)
        if output in ready:
            text = os.read(output, 65536)
            log.take(text)
            sources = sources if text else [woken]
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status, oom
        if time.monotonic() >= look_at and not oom:
            look_at = time.monotonic() + LOOK_S
            if memory_of([child, *descendants(child)]) > order["memory_bytes"]:
                oom = True
                end(child)


def wake_on_child_end() -> int:
    """A pipe that becomes readable when a child ends."""
    woken, wakes = os.pipe()
    for number in (woken, wakes):
        os.set_blocking(number, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return woken


def end(child: int) -> None:
    for pid in (child, *descendants(os.getpid())):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def sweep(child: int) -> None:
    """Kill whatever the program started and left behind. As subreaper, this process inherits its orphans."""
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    for _ in range(200):
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        left = descendants(os.getpid())
        if not left:
            return
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def main(directory: str) -> None:
    os.chdir(directory)
    with open("order.json", encoding="utf-8") as file:
        order = json.load(file)
    lock = os.open("lock", os.O_CREAT | os.O_RDWR, 0o600)  # held until this supervisor ends: a program is started once
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(ALREADY)
    if os.path.exists("running.json"):
        sys.exit(ALREADY)
    ready, told = os.pipe()
    if os.fork():  # the orchestrator waits for this process only until the program runs
        os.close(told)
        os._exit(0 if os.read(ready, 1) else 1)
    os.close(ready)
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    log = Log()
    woken = wake_on_child_end()
    output, inner = os.pipe()
    child = start(order, inner)
    os.close(inner)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    births = {"keeper_birth": birth_of(os.getpid()), "child_birth": birth_of(child)}
    write("running.json", {"keeper": os.getpid(), "child": child, "started_at": time.time(), **births})
    os.write(told, b"1")
    os.close(told)
    status, oom = keep(order, child, output, woken, log)
    sweep(child)
    while select.select([output], [], [], 0)[0] and (text := os.read(output, 65536)):
        log.take(text)
    code = os.waitstatus_to_exitcode(status)
    write("exit.json", {"exit_code": 128 - code if code < 0 else code, "oom_killed": oom, "finished_at": time.time()})


if __name__ == "__main__":
    main(sys.argv[1])
