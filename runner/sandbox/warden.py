"""One warden per slot: forks the child for the next job, watches it, ends it, proves that nothing is left, reports.

The child is there before its job is, so that nobody waits for a fork; it gets the job from the runner. The warden holds
no job data: program, input and output pass as descriptors that it never reads, so a later child can find nothing of an
earlier one in the memory that it inherits.
"""

import contextlib
import fcntl
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
from runner.sandbox.jail import FIRST_LIBRARY_FD, JAILED_FD, RULESET_FD, Jail, Walls
from runner.sandbox.wire import ANCILLARY_BYTES, FDS, LONGEST, How, Job, Report, pack_pid, unpack_begun, unpack_pid

PAGE = os.sysconf("SC_PAGE_SIZE")
LOOK_MS = 20
"""How often the memory of a running child is looked at."""
IDLE_LOOK_MS = 100
"""How often a waiting child is looked at where the kernel can't tell of its end."""
FORK_TRIES = 250
SETUP_FAILED = 125

Prepare = Callable[[], Callable[[Job], None]]


def run(
    control: socket.socket, jobs: socket.socket, ruleset: int, libraries: list[int], walls: Walls, prepare: Prepare
) -> NoReturn:
    """Serve jobs until the runner hangs up. Never returns."""
    kernel.try_prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE):
        with contextlib.suppress(OSError, ValueError):  # gVisor knows fewer of them
            resource.setrlimit(kind, (0, 0))
    control, jobs = _settle_descriptors(control, jobs, ruleset, libraries)
    for number in (signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    os.chdir(walls.folder)
    serve = prepare()
    gc.collect()
    gc.freeze()
    warden = _Warden(control, jobs, walls, serve)
    while True:
        warden.one_child()


def _settle_descriptors(
    control: socket.socket, jobs: socket.socket, ruleset: int, libraries: list[int]
) -> tuple[socket.socket, socket.socket]:
    """Put everything where a child expects it, so that received descriptors never collide with a target number."""
    first_own = FIRST_LIBRARY_FD + len(libraries)
    high = first_own + 64
    kept = [_lift(fd, high) for fd in (*libraries, control.detach(), jobs.detach())]
    null = _lift(os.open(os.devnull, os.O_RDWR), high)
    lifted_ruleset = _lift(ruleset, high) if ruleset >= 0 else null
    jailed = _lift(os.eventfd(0, os.EFD_NONBLOCK), high)
    for number in range(6):
        os.dup2(null, number)
    os.dup2(lifted_ruleset, RULESET_FD)
    os.dup2(jailed, JAILED_FD)
    for index, fd in enumerate(kept):
        os.dup2(fd, FIRST_LIBRARY_FD + index)
    kernel.close_from(first_own + 2)
    return socket.socket(fileno=first_own), socket.socket(fileno=first_own + 1)


def _lift(fd: int, floor: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, floor)


class _Warden:
    def __init__(self, control: socket.socket, jobs: socket.socket, walls: Walls, serve: Callable[[Job], None]) -> None:
        self.control, self.jobs, self.serve = control, jobs, serve
        self.jail = Jail(walls)
        self.own_pages = _resident_pages(os.getpid())
        self.has_pidfd = _pidfd_works()
        self.poll = select.poll()
        self.poll.register(control.fileno(), select.POLLIN | select.POLLRDHUP)
        self.last: Report | None = None
        """Of the child before; told together with the pid of the next one."""

    def one_child(self) -> None:
        """Fork a child that waits for a job, see it through to its end, keep the report."""
        pid = self._fork()
        if pid == 0:
            self._become_child()
        self._tell(pid)
        how, jailed = self._watch(pid)
        _, status, usage = os.wait4(pid, 0)
        left = self._sweep()
        cpu = usage.ru_utime + usage.ru_stime
        self.last = Report(how, status, jailed, left, cpu, usage.ru_maxrss * 1024)

    def _tell(self, pid: int) -> None:
        message = pack_pid(pid) if self.last is None else self.last._replace(next_pid=pid).pack()
        try:
            self.control.send(message)
        except OSError:
            self._leave(pid)

    def _leave(self, pid: int) -> NoReturn:
        if pid:
            self._end(pid, How.RUNNER)
            os.waitpid(pid, 0)
        os._exit(0)

    def _fork(self) -> int:
        try:
            return kernel.raw_fork()
        except OSError:
            pass
        if self.last is not None:  # nobody waits longer for a report than necessary
            self._tell(0)
            self.last = None
        for _ in range(FORK_TRIES):
            time.sleep(0.02)
            with contextlib.suppress(OSError):
                return kernel.raw_fork()
        self._tell(0)  # the process limit of the container is taken up by somebody else
        os._exit(1)

    def _become_child(self) -> NoReturn:
        try:
            job, fds = self._job()
            self.jail.enter(job, fds)
            self.serve(job)
            os._exit(0)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.write(2, f"sandbox: {type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(SETUP_FAILED)

    def _job(self) -> tuple[Job, tuple[int, ...]]:
        own = os.getpid()
        while True:
            message, ancillary, _, _ = self.jobs.recvmsg(LONGEST, ANCILLARY_BYTES)
            if not message:
                os._exit(0)
            job, fds = Job.unpack(message), FDS.unpack(ancillary[0][2])
            if job.pid == own:
                return job, fds
            for fd in fds:  # meant for a child that died while it waited
                os.close(fd)

    def _watch(self, pid: int) -> tuple[How, int]:
        """Wait for the end of the child, or bring it about; also says whether all layers were on."""
        pidfd = os.pidfd_open(pid) if self.has_pidfd else -1
        self.poll.register(JAILED_FD, select.POLLIN)
        if pidfd >= 0:
            self.poll.register(pidfd, select.POLLIN)
        try:
            while True:
                ready = [fd for fd, _ in self.poll.poll(None if pidfd >= 0 else IDLE_LOOK_MS)]
                if JAILED_FD in ready:
                    return self._watch_program(pid, pidfd), 1
                if pidfd in ready or (pidfd < 0 and _has_ended(pid)):
                    return How.ITSELF, 0
                if ready and self._told_to_end(pid):
                    return How.RUNNER, 0
        finally:
            if pidfd >= 0:
                self.poll.unregister(pidfd)
                os.close(pidfd)

    def _watch_program(self, pid: int, pidfd: int) -> How:
        pages, seconds = unpack_begun(os.read(JAILED_FD, 8))
        self.poll.unregister(JAILED_FD)
        most_pages, until = self.own_pages + pages, time.monotonic() + seconds
        while True:
            ready = [fd for fd, _ in self.poll.poll(LOOK_MS if pidfd >= 0 else 2)]
            if pidfd in ready or (pidfd < 0 and _has_ended(pid)):
                return How.ITSELF
            if ready and self._told_to_end(pid):
                return How.RUNNER
            if time.monotonic() > until:
                return self._end(pid, How.WALL)
            if _resident_pages(pid) > most_pages:
                return self._end(pid, How.MEMORY)

    def _told_to_end(self, pid: int) -> bool:
        try:
            message = self.control.recv(LONGEST)
        except OSError:
            message = b""
        if message and unpack_pid(message) != pid:
            return False  # a late word about a child that has ended
        if not message:
            self._leave(pid)
        self._end(pid, How.RUNNER)
        return True

    def _end(self, pid: int, how: How) -> How:
        os.kill(pid, signal.SIGKILL)  # not reaped yet, so the pid is still this child's
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
