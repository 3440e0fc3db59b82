"""Runs and measures one repeat of a command and ends all its processes. Synchronous; called by the measuring process.

Wall time runs from just before exec to the end of the first process. CPU time covers the whole process tree: orphans become
children of the measuring process, which waits for them. Descendants that nobody waited for are missing from that sum; they
are added from the container's own counter.
"""

import contextlib
import os
import resource
import selectors
import signal
import time
from dataclasses import dataclass, field
from typing import NoReturn

from runner.commands.capture import Capture
from runner.commands.counters import Counters
from runner.commands.isolation import CommandFilter
from runner.sandbox.kernel import process_tree, syscalls

FIRST_LOOK_S = 0.002
PIECE = 1 << 18
STUBBORN_S = 10.0
FLOOR_SLACK = 2 << 20
LOOKED_AT = 32
"""Only this many processes are inspected one by one; the control group counts all of them."""
NOT_STARTED = 127
MOST_PROCESSES = 1536
"""For a command in a container with a limit of 2048: to kill them all, the measuring process must still be able to fork."""
YIELDS = 10
"""Niceness of a command, so that even thousands of processes leave the runner enough CPU to report. Other containers have
their own shares."""
SLACK_S, SLACK_SHARE = 0.05, 0.02
READY = b"ready %d\n"


class Stopped(Exception):
    """The result is no longer wanted."""


@dataclass(frozen=True)
class Program:
    argv: list[str]
    env: dict[str, str]
    workdir: str
    timeout_s: float
    uid: int
    """-1 for the current user."""
    walls: CommandFilter | None


@dataclass
class Measured:
    """Filled while the command runs."""

    wall_s: float = 0.0
    user_s: float = 0.0
    system_s: float = 0.0
    throttled_s: float | None = None
    peak_bytes: int = 0
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    out_of_memory: bool = False
    trouble: str = ""
    """Why the program could not be started."""
    output: Capture = field(default_factory=Capture)

    @property
    def cpu_s(self) -> float:
        return self.user_s + self.system_s


def measure(program: Program, counters: Counters, stop_fd: int) -> Measured:
    """Raises `Stopped` when `stop_fd` becomes readable."""
    with contextlib.ExitStack() as stack:
        pipes = [os.pipe() for _ in range(4)]
        open_fds = {fd for pair in pipes for fd in pair}
        stack.callback(_close, open_fds)
        (out, out_end), (news, news_end), (gate_end, gate), (wake, wake_end) = pipes
        for fd in (out, wake, wake_end):
            os.set_blocking(fd, False)
        before = signal.signal(signal.SIGCHLD, lambda *_: None)
        stack.callback(signal.signal, signal.SIGCHLD, before)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        stack.callback(signal.set_wakeup_fd, -1)
        base = counters.occupied_bytes()  # without the child, whose copied pages are gone after exec
        pid = os.fork()
        if pid == 0:
            _become(program, out_end, news_end, gate_end)
        for fd in (out_end, news_end, gate_end):
            os.close(fd)
            open_fds.discard(fd)
        family = _Family(pid, program.uid)
        stack.callback(family.end)
        return _follow(program, counters, family, _Ends(out, news, gate, wake, stop_fd), base)


def _close(fds: set[int]) -> None:
    for fd in fds:
        os.close(fd)


@dataclass(frozen=True)
class _Ends:
    out: int
    news: int
    gate: int
    wake: int
    stop: int


class _Family:
    """The first process and its descendants."""

    def __init__(self, first: int, uid: int) -> None:
        self.first, self._uid = first, uid
        self.status: int | None = None
        self.user_s = self.system_s = 0.0
        self.largest_bytes = 0

    def reap(self) -> bool:
        """Reaps ended processes; returns whether the first process has ended."""
        with contextlib.suppress(ChildProcessError):
            while (ended_child := os.wait4(-1, os.WNOHANG))[0]:
                self._take(*ended_child)
        return self.status is not None

    def end(self) -> None:
        """Kills and reaps all remaining processes."""
        until = time.monotonic() + STUBBORN_S
        while time.monotonic() < until:
            try:
                ended_child = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if ended_child[0]:
                self._take(*ended_child)
                continue
            if self._uid >= 0:
                process_tree.kill_everything_of(self._uid)
            else:
                for pid in process_tree.descendants(os.getpid()):
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
            time.sleep(0.001)

    def _take(self, pid: int, status: int, usage: resource.struct_rusage) -> None:
        self.user_s += usage.ru_utime
        self.system_s += usage.ru_stime
        self.largest_bytes = max(self.largest_bytes, usage.ru_maxrss * 1024)
        if pid == self.first:
            self.status = status


def _follow(program: Program, counters: Counters, family: _Family, ends: _Ends, base: int) -> Measured:
    measured = Measured()
    floor, measured.trouble = _ready(ends.news)
    killed = counters.killed_for_memory()
    reading, own_s = counters.read(), counters.own_cpu_s()
    began = time.monotonic()
    if floor is not None:
        with contextlib.suppress(BrokenPipeError):
            os.write(ends.gate, b"g")
    ended, seen, most = _watch(counters, family, ends, measured.output, began + program.timeout_s)
    measured.wall_s = ended - began
    measured.timed_out = family.status is None
    family.end()
    _drain(ends.out, measured.output)
    status = family.status or 0
    measured.exit_code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    measured.signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    measured.trouble = measured.trouble or os.read(ends.news, 4096).decode("utf-8", "replace")
    measured.out_of_memory = not measured.timed_out and status != 0 and counters.killed_for_memory() > killed
    largest = family.largest_bytes
    measured.peak_bytes = max(largest if largest > (floor or 0) + FLOOR_SLACK else seen, most - base)
    measured.user_s, measured.system_s = family.user_s, family.system_s
    after = counters.read()
    if reading is not None and after is not None:
        counted_s = after.cpu_s - reading.cpu_s - (counters.own_cpu_s() - own_s)
        if counted_s > measured.cpu_s * (1 + SLACK_SHARE) + SLACK_S:
            measured.user_s += counted_s - measured.cpu_s
        if after.throttled_s is not None and reading.throttled_s is not None:
            measured.throttled_s = after.throttled_s - reading.throttled_s
    return measured


def _watch(counters: Counters, family: _Family, ends: _Ends, output: Capture, deadline: float) -> tuple[float, int, int]:
    """Waits for the first process or the deadline; returns when that was and the peak memory of one process and of all."""
    seen = most = 0
    began = False
    step_s, look_at = FIRST_LOOK_S, time.monotonic() + FIRST_LOOK_S
    with selectors.DefaultSelector() as selector:
        for fd in (ends.out, ends.wake, ends.stop, ends.news):
            selector.register(fd, selectors.EVENT_READ)
        while not family.reap():
            now = time.monotonic()
            if now >= deadline:
                return deadline, seen, most
            if now >= look_at and began:
                pids = process_tree.descendants(os.getpid())
                seen = max([seen, *map(process_tree.peak_bytes, pids[:LOOKED_AT])])
                if len(pids) > 1:  # for a single process the kernel's own peak is better
                    most = max(most, counters.occupied_bytes())
                step_s = min(2 * step_s, counters.look_s)
                look_at = now + step_s
            ready = {key.fd for key, _ in selector.select(max(FIRST_LOOK_S / 10, min(look_at, deadline) - now))}
            if ends.stop in ready:
                raise Stopped
            if ends.wake in ready:
                now = time.monotonic()
                with contextlib.suppress(BlockingIOError):
                    os.read(ends.wake, 4096)
                if family.reap():
                    return now, seen, most
            if ends.news in ready:  # closed by exec, or it carries an error message
                selector.unregister(ends.news)
                began, look_at = True, time.monotonic() + FIRST_LOOK_S
            if ends.out in ready and not _take(ends.out, output):
                selector.unregister(ends.out)
    return time.monotonic(), seen, most


def _take(fd: int, output: Capture) -> bool:
    """Returns False at the end of the output."""
    with contextlib.suppress(BlockingIOError):
        piece = os.read(fd, PIECE)
        output.add(piece)
        return bool(piece)
    return True


def _drain(fd: int, output: Capture) -> None:
    with contextlib.suppress(BlockingIOError):
        while piece := os.read(fd, PIECE):
            output.add(piece)


def _ready(news: int) -> tuple[int | None, str]:
    """Returns the child's peak memory before its exec, which the kernel counts as the program's; else None and the
    reason."""
    message = b""
    while b"\n" not in message:
        piece = os.read(news, 4096)
        if not piece:
            return None, message.decode("utf-8", "replace") or "the process could not be prepared"
        message += piece
    return int(message.split()[1]), ""


def _become(program: Program, out: int, news: int, gate: int) -> NoReturn:
    """Runs in the child: does everything but the exec before the clock starts."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        for fd, target in ((null, 0), (out, 1), (out, 2)):
            os.dup2(fd, target)
        for fd in map(int, os.listdir("/proc/self/fd")):
            if fd > 2 and fd not in (news, gate):
                with contextlib.suppress(OSError):  # the descriptor of the listing itself is closed already
                    os.close(fd)
        parent = os.getppid()
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")  # if memory runs out, the kernel must kill the command, not the runner
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if program.uid >= 0:
            os.nice(YIELDS)
            resource.setrlimit(resource.RLIMIT_NPROC, (MOST_PROCESSES, MOST_PROCESSES))
            syscalls.become_user(program.uid)
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL.value)  # changing the user resets it
        os.umask(0o022)
        os.chdir(program.workdir)
        for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        if os.getppid() == parent:
            if program.walls is not None:
                program.walls.install()
            os.write(news, READY % process_tree.peak_bytes("self"))
            if os.read(gate, 1):
                os.execvpe(program.argv[0], program.argv, program.env)  # noqa: S606
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(news, _sentence(program, error).encode("utf-8", "replace"))
    os._exit(NOT_STARTED)


def _sentence(program: Program, error: BaseException) -> str:
    if isinstance(error, FileNotFoundError) and error.filename == program.workdir:
        return f"the image has no directory {program.workdir!r}"
    if isinstance(error, FileNotFoundError):
        return f"the image has no program {program.argv[0]!r}"
    return f"{program.argv[0]!r} could not be started: {error}"
