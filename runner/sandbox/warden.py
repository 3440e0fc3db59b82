"""One warden per slot: starts a child for each job, watches it, ends it, proves that nothing is left, reports.

It holds no job data: program, input and output pass as descriptors that it never reads, so a later child can find
nothing of an earlier one in the memory that it inherits.
"""

import contextlib
import gc
import os
import resource
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import NoReturn

from runner.sandbox import kernel
from runner.sandbox.jail import FIRST_LIBRARY_FD, JAILED_FD, RULESET_FD, Walls, enter
from runner.sandbox.wire import KILL, LONGEST, MOST_FDS, How, Job, Mode, Report, pack_started

PAGE = os.sysconf("SC_PAGE_SIZE")
LOOK_S = 0.02
"""How often the memory of a running child is looked at."""
FORK_TRIES = 250
SETUP_FAILED = 125

Prepare = Callable[[], Callable[[Mode], None]]


def run(control: socket.socket, ruleset: int, libraries: list[int], walls: Walls, prepare: Prepare) -> NoReturn:
    """Serve jobs until the runner hangs up. Never returns."""
    kernel.try_prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE):
        with contextlib.suppress(OSError, ValueError):  # gVisor knows fewer of them
            resource.setrlimit(kind, (0, 0))
    control, jailed = _settle_descriptors(control, ruleset, libraries)
    for number in (signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    os.chdir(walls.folder)
    serve = prepare()
    gc.collect()
    gc.freeze()
    warden = _Warden(control, jailed, walls, serve)
    while True:
        message, fds, _, _ = socket.recv_fds(control, LONGEST, MOST_FDS)
        if not message:
            os._exit(0)
        if Job.fits(message):
            warden.carry_out(Job.unpack(message), fds)


def _settle_descriptors(control: socket.socket, ruleset: int, libraries: list[int]) -> tuple[socket.socket, int]:
    """Put everything where a child expects it, so that received descriptors never collide with a target number."""
    high = FIRST_LIBRARY_FD + len(libraries) + 64
    moved_control = os.dup(control.fileno())
    kept = [_lift(fd, high) for fd in (moved_control, *libraries)]
    lifted_ruleset = _lift(ruleset, high) if ruleset >= 0 else -1
    null = _lift(os.open(os.devnull, os.O_RDWR), high)
    jailed = _lift(os.eventfd(0, os.EFD_NONBLOCK), high)
    for number in range(6):
        os.dup2(null, number)
    os.dup2(lifted_ruleset if ruleset >= 0 else null, RULESET_FD)
    os.dup2(jailed, JAILED_FD)
    for index, fd in enumerate(kept[1:]):
        os.dup2(fd, FIRST_LIBRARY_FD + index)
    moved = os.dup2(kept[0], FIRST_LIBRARY_FD + len(libraries))
    control.detach()
    kernel.close_from(moved + 1)
    return socket.socket(fileno=moved), JAILED_FD


def _lift(fd: int, floor: int) -> int:
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, floor)


class _Warden:
    def __init__(self, control: socket.socket, jailed: int, walls: Walls, serve: Callable[[Mode], None]) -> None:
        self.control, self.jailed, self.walls, self.serve = control, jailed, walls, serve
        self.own_pages = _resident_pages(os.getpid())
        self.has_pidfd = _pidfd_works()
        self.fork = kernel.raw_fork

    def carry_out(self, job: Job, fds: list[int]) -> None:
        started = time.monotonic()
        pid = self._fork()
        if pid == 0:
            self._become_child(job, fds)
        for fd in fds:
            os.close(fd)
        if pid < 0:  # the process limit of the container is taken up by somebody else
            self._send(pack_started(0))
            self._send(Report(How.ITSELF, 0, 0, 0, 0.0, 0.0, 0).pack())
            return
        self._send(pack_started(pid))
        how = self._watch(pid, started, job)
        _, status, usage = os.wait4(pid, 0)
        left = self._sweep()
        cpu = usage.ru_utime + usage.ru_stime
        seen = Report(how, status, self._was_jailed(), left, time.monotonic() - started, cpu, usage.ru_maxrss * 1024)
        self._send(seen.pack())

    def _fork(self) -> int:
        for _ in range(FORK_TRIES):
            try:
                return self.fork()
            except OSError:
                time.sleep(0.02)
        return -1

    def _become_child(self, job: Job, fds: list[int]) -> NoReturn:
        try:
            enter(job, fds, self.walls)
            self.serve(job.mode)
            os._exit(0)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.write(2, f"sandbox: {type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(SETUP_FAILED)

    def _watch(self, pid: int, started: float, job: Job) -> How:
        """Wait for the end of the child, or bring it about."""
        pidfd = os.pidfd_open(pid) if self.has_pidfd else -1
        poll = select.poll()
        poll.register(self.control.fileno(), select.POLLIN | select.POLLRDHUP)
        if pidfd >= 0:
            poll.register(pidfd, select.POLLIN)
        most_pages = self.own_pages + job.memory_bytes // PAGE
        try:
            while True:
                left = started + job.wall_s - time.monotonic()
                if left <= 0:
                    return self._end(pid, How.WALL)
                step = min(left, LOOK_S if pidfd >= 0 else 0.002)
                ready = dict(poll.poll(step * 1000))
                if pidfd in ready or (pidfd < 0 and _has_ended(pid)):
                    return How.ITSELF
                if ready:
                    return self._end(pid, How.RUNNER)
                if _resident_pages(pid) > most_pages:
                    return self._end(pid, How.MEMORY)
        finally:
            if pidfd >= 0:
                os.close(pidfd)

    def _end(self, pid: int, how: How) -> How:
        os.kill(pid, signal.SIGKILL)  # not reaped yet, so the pid is still this child's
        if how is How.RUNNER:
            try:
                gone = self.control.recv(len(KILL)) == b""
            except OSError:
                gone = True
            if gone:
                os.waitpid(pid, 0)
                os._exit(0)
        return how

    def _sweep(self) -> int:
        """As a subreaper this process inherits whatever the child left: there must be nothing."""
        left = 0
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return left
            left += 1
            if pid == 0:
                _kill_children()

    def _was_jailed(self) -> int:
        try:
            os.read(self.jailed, 8)
        except BlockingIOError:
            return 0
        return 1

    def _send(self, message: bytes) -> None:
        try:
            self.control.send(message)
        except OSError:
            os._exit(0)


def _resident_pages(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1])
    except (OSError, IndexError):
        return 0


def _pidfd_works() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _kill_children() -> None:
    own = os.getpid()
    with contextlib.suppress(OSError), open(f"/proc/self/task/{own}/children") as file:
        for child in file.read().split():
            with contextlib.suppress(OSError):
                os.kill(int(child), signal.SIGKILL)
    time.sleep(0.001)
