"""One supervisor per slot: forks the child for the next job, watches it, ends it, makes sure that nothing is left, reports.

The child is forked before its job arrives, so that nobody waits for a fork; it gets the job from the runner. The supervisor
holds no job data: program, input and output pass as descriptors that it never reads, so that a later child finds nothing of
an earlier one in the memory that it inherits.
"""

import contextlib
import fcntl
import gc
import os
import resource
import select
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from typing import NoReturn

from runner.sandbox.kernel import process_tree, syscalls
from runner.sandbox.kernel.cgroup import INTERPRETER_BYTES, ExecutionGroup, SandboxGroup
from runner.sandbox.kernel.process_tree import PAGE
from runner.sandbox.limits import Allow
from runner.sandbox.processes.jail import JAILED_FD, ROOMY, RULESET_FD, Jail, JailSettings
from runner.sandbox.processes.template import Template, TemplateGoneError
from runner.sandbox.protocol.messages import (
    ANCILLARY_BYTES,
    FIRST_LIBRARY_FD,
    INLINE_BYTES,
    JOB_BYTES,
    LONGEST,
    EndedBy,
    Job,
    Report,
    SupervisorSpec,
    pack_pid,
    unpack_fds,
    unpack_pid,
)

LOOK_MS = 20
"""How often the memory of a running child is checked."""
IDLE_LOOK_MS = 100
"""How often a waiting child is checked if the kernel cannot report its end."""
DISK_LOOKS = 5
"""Files are counted at every nth check."""
FORK_TRIES = 250
WARM_UPS = 12
SETUP_FAILED = 125

Serve = Callable[[Job, bytes], None]
Prepare = Callable[[SupervisorSpec], Serve]


def run(
    control: socket.socket,
    jobs: socket.socket,
    spec: SupervisorSpec,
    settings: JailSettings,
    libraries: list[int],
    sandbox_group: SandboxGroup | None,
    prepare: Prepare,
) -> NoReturn:
    """Serves jobs until the runner closes the connection. Never returns."""
    syscalls.try_prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE):
        with contextlib.suppress(OSError, ValueError):  # gVisor supports fewer of them
            resource.setrlimit(kind, (0, 0))
    if spec.allow and spec.uid >= 0:
        process_tree.kill_everything_of(spec.uid)  # what an earlier supervisor may have left when it was killed
    folder = _private_folder(spec.uid) if spec.allow & Allow.FILES else ""
    ruleset = settings.ruleset(spec, folder)
    control, jobs, started_fd = _settle_descriptors(control, jobs, ruleset, libraries)
    for number in (signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.chdir(settings.folder)
    serve = prepare(spec)
    group = sandbox_group.execution_group() if sandbox_group is not None else None
    gc.collect()
    gc.freeze()
    supervisor = _Supervisor(control, jobs, started_fd, spec, group, folder, Jail(settings, spec, group, folder), serve)
    while True:
        supervisor.one_child()


def _private_folder(uid: int) -> str:
    """Creates a folder as the user, because only the user can create one that it owns."""
    folder = os.path.join(tempfile.gettempdir(), f"benchyard-work-{os.getpid()}-{time.monotonic_ns()}")

    def make() -> int:
        os.mkdir(folder, 0o700)
        return 0

    if process_tree.as_user(uid, make):
        raise OSError(f"{folder} can't be made")
    return folder


def _settle_descriptors(
    control: socket.socket, jobs: socket.socket, ruleset: int, libraries: list[int]
) -> tuple[socket.socket, socket.socket, int]:
    """Moves all descriptors to where a child expects them, so that received ones never collide with a target number."""
    first_own = FIRST_LIBRARY_FD + len(libraries)
    high = first_own + 64
    started_fd, jailed = os.pipe()
    lifted = [_lift(fd, high) for fd in (*libraries, control.detach(), jobs.detach(), started_fd)]
    null = _lift(os.open(os.devnull, os.O_RDWR), high)
    lifted_ruleset = _lift(ruleset, high) if ruleset >= 0 else null
    jailed = _lift(jailed, high)
    for number in range(6):
        os.dup2(null, number)
    os.dup2(lifted_ruleset, RULESET_FD)
    os.dup2(jailed, JAILED_FD)
    for index, fd in enumerate(lifted):
        os.dup2(fd, FIRST_LIBRARY_FD + index)
    syscalls.close_from(first_own + 3)
    return socket.socket(fileno=first_own), socket.socket(fileno=first_own + 1), first_own + 2


def _lift(fd: int, floor: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, floor)


class _Supervisor:
    def __init__(
        self,
        control: socket.socket,
        jobs: socket.socket,
        started_fd: int,
        spec: SupervisorSpec,
        group: ExecutionGroup | None,
        folder: str,
        jail: Jail,
        serve: Serve,
    ) -> None:
        self.control, self.jobs, self.started_fd, self.serve, self.jail = control, jobs, started_fd, serve, jail
        self.uid, self.group, self.folder = spec.uid, group, folder
        self.many = bool(spec.allow & Allow.PROCESSES)
        self.own_pages = process_tree.resident_pages(os.getpid())
        self.most_pages = 0
        self.has_pidfd = _pidfd_works()
        self.poll = select.poll()
        self.control_fd = control.fileno()
        self.poll.register(self.control_fd, select.POLLIN | select.POLLRDHUP)
        self.last: Report | None = None
        """Report of the previous child; sent together with the pid of the next one."""
        self.room = (0, 0)
        """The group's current limits."""
        self.template: Template | None = None
        if spec.template and self.has_pidfd:
            self._warm_up()
            self._start_template()

    def _warm_up(self) -> None:
        few, many = 0xFFFFFFFF, ROOMY
        job = Job(os.getpid(), 0, 1.0, float(many), many, many, few, few, many, 0, 1)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            for _ in range(WARM_UPS):
                self.jail.warm_up(job)
                socket.send_fds(ours, [job.pack(), b"program"], [0, 1, 2, 4])
                _, _, fds = self._job(theirs)
                for fd in fds:
                    os.close(fd)

    def _start_template(self) -> None:
        self.template = Template.start(self.jail, self.jobs.fileno(), self._become_template_child, self.started_fd + 1)
        if self.template is not None:
            self.poll.register(self.template.listener, select.POLLIN)

    def one_child(self) -> None:
        """Forks a child that waits for a job, watches it until it ends, and keeps the report."""
        pid = self._fork()
        if pid == 0:
            self._become_child()
        self._announce(pid)
        self.most_pages = 0
        ended_by, jailed = self._watch(pid)
        _, status, usage = os.wait4(pid, 0)
        cpu = usage.ru_utime + usage.ru_stime + self._sweep()
        if self.group is not None and (self.many or os.WIFSIGNALED(status)) and self.group.ran_out_of_memory():
            ended_by = EndedBy.MEMORY
        if self.folder and process_tree.as_user(self.uid, lambda: process_tree.empty(self.folder)):
            self._leave(0)
        peak = max(usage.ru_maxrss * 1024, (self.own_pages + self.most_pages) * PAGE if self.many else 0)
        self.last = Report(ended_by, status, jailed, cpu, peak)

    def _announce(self, pid: int) -> None:
        message = pack_pid(pid) if self.last is None else self.last._replace(next_pid=pid).pack()
        try:
            self.control.send(message)
        except OSError:
            self._leave(pid)

    def _leave(self, pid: int) -> NoReturn:
        if pid:
            os.kill(pid, signal.SIGKILL)
        process_tree.end_all_children(self.uid if self.many else -1)
        if self.folder:
            process_tree.as_user(self.uid, lambda: process_tree.empty(self.folder))
            process_tree.as_user(self.uid, self._remove_folder)
        if self.group is not None:
            self.group.remove()
        os._exit(0)

    def _remove_folder(self) -> int:
        os.rmdir(self.folder)
        return 0

    def _fork(self) -> int:
        try:
            return self._fork_once()
        except OSError:
            pass
        if self.last is not None:  # do not delay the report
            self._announce(0)
            self.last = None
        for _ in range(FORK_TRIES):
            time.sleep(0.02)
            with contextlib.suppress(OSError):
                return self._fork_once()
        self._announce(0)  # other processes use up the container's process limit
        self._leave(0)

    def _fork_once(self) -> int:
        if self.template is None:
            return syscalls.raw_fork()
        try:
            return self.template.fork()
        except TemplateGoneError:  # for example, the kernel ran out of memory and killed the whole group
            self.poll.unregister(self.template.listener)
            self.template.end()
            process_tree.end_all_children(-1)  # one that it forked but never named would take the jobs of others
            self._start_template()
            raise OSError("it can't fork now") from None

    def _become_child(self) -> NoReturn:
        try:
            if self.group is not None:
                self.group.join()
            job, payload, fds = self._job(self.jobs)
            self.jail.enter(job, fds)
            self.serve(job, payload)
            os._exit(0)
        except BaseException as error:
            _complain(error)
        finally:
            os._exit(SETUP_FAILED)

    def _become_template_child(self, jobs: socket.socket) -> NoReturn:
        """Runs in a child of the template."""
        try:
            job, payload, fds = self._job(jobs)
            self.jail.enter_from_template(job, fds)
            self.serve(job, payload)
            os._exit(0)
        except BaseException as error:
            _complain(error)
        finally:
            os._exit(SETUP_FAILED)

    def _job(self, jobs: socket.socket) -> tuple[Job, bytes, tuple[int, ...]]:
        own = os.getpid()
        while True:
            message, ancillary, _, _ = jobs.recvmsg(JOB_BYTES + INLINE_BYTES, ANCILLARY_BYTES)
            if not message:
                os._exit(0)
            job, fds = Job.unpack(message), unpack_fds(ancillary[0][2])
            if job.pid == own:
                return job, message[JOB_BYTES:], fds
            for fd in fds:  # meant for a child that died while it waited
                os.close(fd)

    def _watch(self, pid: int) -> tuple[EndedBy, int]:
        """Waits for the child to end, or ends it; also returns whether all layers were on."""
        pidfd = os.pidfd_open(pid) if self.has_pidfd else -1
        self.poll.register(self.started_fd, select.POLLIN)
        if pidfd >= 0:
            self.poll.register(pidfd, select.POLLIN)
        try:
            while True:
                ready = [fd for fd, _ in self.poll.poll(None if pidfd >= 0 else IDLE_LOOK_MS)]
                if self.started_fd in ready:
                    return self._watch_program(pid, pidfd), 1
                if pidfd in ready or (pidfd < 0 and _has_ended(pid)):
                    return EndedBy.ITSELF, 0
                if self.control_fd in ready and self._ordered_to_end(pid):
                    return EndedBy.RUNNER, 0
        finally:
            if pidfd >= 0:
                self.poll.unregister(pidfd)
                os.close(pidfd)

    def _watch_program(self, pid: int, pidfd: int) -> EndedBy:
        job = Job.unpack(os.read(self.started_fd, LONGEST))
        self.poll.unregister(self.started_fd)
        if self.template is not None:
            self._give_room(job)
        until = time.monotonic() + job.wall_s
        looks = 0
        while True:
            ready = [fd for fd, _ in self.poll.poll(LOOK_MS if pidfd >= 0 else 2)]
            if pidfd in ready or (pidfd < 0 and _has_ended(pid)):
                return EndedBy.ITSELF
            if self.control_fd in ready and self._ordered_to_end(pid):
                return EndedBy.RUNNER
            if self.template is not None and self.template.listener in ready:
                self._decide(pid)
            if time.monotonic() > until:
                return self._end(pid, EndedBy.WALL)
            looks += 1
            if over := self._over(pid, job, looks):
                return self._end(pid, over)

    def _give_room(self, job: Job) -> None:
        """Sets the limits of the group, which template and child share. The child's own limits are in force already."""
        memory, processes = self.jail.room(job)
        if self.group is not None and self.room != (memory, processes):
            with contextlib.suppress(OSError):  # lower than its current usage: the kernel refuses, and checking goes on
                self.group.limit(memory, processes + 1)  # the template is in the group, too
                self.room = memory, processes

    def _decide(self, running: int) -> None:
        assert self.template is not None
        try:
            self.template.answer(running)
        except TemplateGoneError:
            self._leave(running)

    def _over(self, pid: int, job: Job, looks: int) -> EndedBy | None:
        """Returns which limit of the whole execution is exceeded that no process limit enforces."""
        if not self.many:
            pages = process_tree.resident_pages(pid) - self.own_pages
        else:
            family = process_tree.descendants(os.getpid())
            if sum(map(process_tree.cpu_seconds, family)) > job.cpu_s:
                return EndedBy.CPU
            pages = self._family_pages(family)
            self.most_pages = max(self.most_pages, pages)
        if pages > job.memory_bytes // PAGE:
            return EndedBy.MEMORY
        if self.folder and looks % DISK_LOOKS == 0:
            most = job.disk_bytes
            if process_tree.as_user(self.uid, lambda: process_tree.takes_more_than(self.folder, most)):
                return EndedBy.DISK
        return None

    def _family_pages(self, family: list[int]) -> int:
        if self.group is not None:
            return max(0, self.group.memory_bytes() - INTERPRETER_BYTES // 2) // PAGE
        # Without their own group, memory that processes share counts for each of them.
        return sum(max(0, process_tree.resident_pages(pid) - self.own_pages) for pid in family)

    def _ordered_to_end(self, pid: int) -> bool:
        try:
            message = self.control.recv(LONGEST)
        except OSError:
            message = b""
        if message and unpack_pid(message) != pid:
            return False  # a late message about a child that has ended
        if not message:
            self._leave(pid)
        self._end(pid, EndedBy.RUNNER)
        return True

    def _end(self, pid: int, ended_by: EndedBy) -> EndedBy:
        os.kill(pid, signal.SIGKILL)  # not reaped yet, so the pid is still this child's
        return ended_by

    def _sweep(self) -> float:
        """Ends the processes that the child left, which this process inherits as a subreaper; returns their CPU seconds.

        A child of a template cannot have forked: its filter allows only one way, which the supervisor refused.
        """
        if self.template is not None:
            return 0.0
        return process_tree.end_all_children(self.uid if self.many else -1)


def _complain(error: BaseException) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"sandbox: {type(error).__name__}: {error}\n".encode())


def _pidfd_works() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
