"""The jail around one child: limits, user id, Landlock, seccomp, in the only order that works.

If a step fails, the child ends before any untrusted line runs. Restrictions are only ever added: a process cannot undo
anything that it set up here.
"""

import os
import resource
import signal
import socket
import sys
from dataclasses import dataclass

from runner.sandbox.kernel import landlock, syscalls
from runner.sandbox.kernel.cgroup import ExecutionGroup
from runner.sandbox.kernel.landlock import Grant, writable
from runner.sandbox.kernel.seccomp import FOR_JUDGES, Filter, Inherited, OpenMode, Rules, build, build_gate
from runner.sandbox.limits import Allow
from runner.sandbox.processes import libraries
from runner.sandbox.protocol.messages import (
    CODE_FD,
    CONTROL_FD,
    FIRST_INPUT_FD,
    FIRST_LIBRARY_FD,
    Job,
    Mode,
    SupervisorSpec,
)

RULESET_FD, JAILED_FD = 6, 7
COMMAND_FD, JOBS_FD = 3, 1000
"""In a template and its children: `PLACES` are free there, so that a job's descriptors arrive at those numbers. Programs
cannot have a descriptor with such a high number, so they cannot receive others."""
NEW_LISTENER = 8
ROOMY = 1 << 40
PLACES = (0, 1, 2, CONTROL_FD, CODE_FD)
"""Numbers of a job's descriptors."""

_JUDGE = Mode.JUDGE.value
ADDRESS_SLACK = 1 << 30
"""Address space in addition to the memory limit, for thread stacks that are mapped and hardly touched; the supervisor
watches the memory that is really occupied."""


@dataclass(frozen=True)
class JailSettings:
    """What a zygote prepares once for all its supervisors."""

    landlock_abi: int
    open_mode: OpenMode
    """Seccomp is not optional."""
    grants: tuple[Grant, ...]
    address_bytes: int
    """Address space of the zygote itself."""
    threads_of_uid: int
    """Threads that this user id already has if slots have no user ids of their own, else 0."""
    library_fds: int
    """How many descriptors of library folders stay open, from FIRST_LIBRARY_FD on."""
    folder: str
    """The empty working directory."""

    def ruleset(self, spec: SupervisorSpec, folder: str) -> int:
        """Returns the descriptor of the ruleset for a supervisor's children; -1 without Landlock."""
        if not self.landlock_abi:
            return -1
        more = [*libraries.executables()] if spec.allow & Allow.PROCESSES else []
        if spec.allow & Allow.FILES:
            more.append(writable(folder))
        return landlock.make_ruleset(self.landlock_abi, [*self.grants, *more])


class Jail:
    """The settings, prepared by the supervisor; its children only have to enter."""

    def __init__(self, settings: JailSettings, spec: SupervisorSpec, group: ExecutionGroup | None, folder: str) -> None:
        self._first_closed = FIRST_LIBRARY_FD + settings.library_fds
        self._address_bytes = settings.address_bytes + ADDRESS_SLACK
        self._threads_of_uid = settings.threads_of_uid
        self._uid, self._group, self._folder = spec.uid, group, folder
        self._disk = bool(folder)  # files on a tmpfs are charged as memory
        confined = settings.landlock_abi >= landlock.CONFINES_SIGNALS
        self._filter = _filter(Rules.for_profile(settings.open_mode, spec.allow, spec.uid >= 0, confined))
        self._judge_filter = _filter(Rules(settings.open_mode, FOR_JUDGES))
        self._gate = Filter(build_gate(syscalls.ARCH), NEW_LISTENER)
        self._inherited = _filter(Rules(settings.open_mode, inherited=Inherited(spec.uid, JOBS_FD)))
        self._restrict = landlock.restriction(RULESET_FD, settings.landlock_abi) if settings.landlock_abi else None
        kinds = (
            resource.RLIMIT_AS,
            resource.RLIMIT_CPU,
            resource.RLIMIT_FSIZE,
            resource.RLIMIT_NOFILE,
            resource.RLIMIT_NPROC,
        )
        self._ceilings = {kind: _ceiling(kind) for kind in kinds}
        self._supervisor = os.getpid()

    def enter(self, job: Job, fds: tuple[int, ...]) -> None:
        """Jails the calling process, a fresh fork of the supervisor."""
        if self._group is not None:
            self._group.limit(*self.room(job))
        fixed = 4 + bool(job.code_bytes)
        for number, fd in zip(PLACES, fds[:fixed], strict=False):
            os.dup2(fd, number, False)
        os.close(COMMAND_FD)
        if not job.code_bytes:
            os.close(CODE_FD)  # judges later receive the connection to a program under this number
        for number, fd in enumerate(fds[fixed:], FIRST_INPUT_FD):
            os.dup2(fd, number, False)
        os.closerange(self._first_closed, FIRST_INPUT_FD)
        syscalls.close_from(FIRST_INPUT_FD + len(fds) - fixed)
        self._limit_itself(job)
        if self._uid >= 0:
            syscalls.become_user(self._uid)
        self._limit_threads(job.processes)
        if self._folder:
            os.chdir(self._folder)
        self._depend_on(self._supervisor)
        if self._restrict is not None:
            self._restrict()
        os.close(RULESET_FD)
        (self._judge_filter if job.mode == _JUDGE else self._filter).install(job.pid)
        os.write(JAILED_FD, job.pack())
        os.close(JAILED_FD)

    def enter_as_template(self, command: socket.socket, jobs: int) -> None:
        """Jails a fresh fork of the supervisor as a template, which can do nothing but fork children that are jailed too.

        The supervisor receives a listener and decides about forks and signals from then on.
        """
        if self._group is not None:
            self._group.join()
        self._depend_on(self._supervisor)
        if self._restrict is not None:
            self._restrict()
        listener = self._gate.install()
        socket.send_fds(command, [b"listener"], [listener])
        os.dup2(command.fileno(), COMMAND_FD, False)
        os.dup2(jobs, JOBS_FD, False)
        os.closerange(self._first_closed, JOBS_FD)
        syscalls.close_from(JOBS_FD + 1)
        for fd in (*PLACES, RULESET_FD):
            os.close(fd)
        self._inherited.install()

    def enter_from_template(self, job: Job, fds: tuple[int, ...]) -> None:
        """Completes the jail for a child of a template once it has its job."""
        fixed = 4 + bool(job.code_bytes)
        if fds[:fixed] != PLACES[:fixed]:
            raise OSError("descriptors did not fall into place")
        if len(fds) > fixed:
            for number, fd in enumerate(fds[fixed:], FIRST_INPUT_FD):
                os.dup2(fd, number, False)
                os.close(fd)
        self._complete(job, (COMMAND_FD, JOBS_FD), self._uid, JOBS_FD, self._supervisor, JAILED_FD)

    def warm_up(self, job: Job) -> None:
        """Does what a child of a template will do here, with arguments that change nothing; see `inside.warm_up`.

        `job` has limits beyond all ceilings.
        """
        null = os.open(os.devnull, os.O_WRONLY)
        self._complete(job, (os.dup(null), os.dup(null)), -1, ROOMY, os.getppid(), null)

    def _complete(self, job: Job, unneeded: tuple[int, int], uid: int, most_files: int, parent: int, jailed: int) -> None:
        for fd in unneeded:
            os.close(fd)
        self._limit_itself(job, most_files)
        if self._uid >= 0:
            syscalls.become_user(uid)
        self._limit_threads(job.processes)
        self._depend_on(parent)
        os.write(jailed, job.pack())
        os.close(jailed)

    def room(self, job: Job) -> tuple[int, int]:
        """Returns the memory and processes that the group of an execution may have."""
        return job.memory_bytes + 2 * job.file_bytes + self._disk * job.disk_bytes, job.processes

    def _limit_itself(self, job: Job, most_files: int = JOBS_FD) -> None:
        self._limit(resource.RLIMIT_AS, self._address_bytes + job.memory_bytes)
        self._limit(resource.RLIMIT_CPU, int(job.cpu_s) + 1, 1)
        self._limit(resource.RLIMIT_FSIZE, job.file_bytes)
        self._limit(resource.RLIMIT_NOFILE, min(job.open_files, most_files))

    def _limit_threads(self, most: int) -> None:
        if self._uid >= 0:
            self._limit(resource.RLIMIT_NPROC, most)
        elif self._threads_of_uid:
            self._limit(resource.RLIMIT_NPROC, self._threads_of_uid + 2 * most)

    def _depend_on(self, parent: int) -> None:
        # A change of user id resets both of these, so they come after it.
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL.value)
        syscalls.try_prctl(syscalls.PR_SET_DUMPABLE, 0)
        if os.getppid() != parent:
            os._exit(0)  # the supervisor died before this call, so nobody would watch this process

    def _limit(self, kind: int, soft: int, more: int = 0) -> None:
        """Lowers a limit, unless it is lower already."""
        hard = min(soft + more, self._ceilings[kind])
        resource.setrlimit(kind, (min(soft, hard), hard))


def _filter(rules: Rules) -> Filter:
    return Filter(build(syscalls.ARCH, rules))


def _ceiling(kind: int) -> int:
    _, hard = resource.getrlimit(kind)
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def drop_privileges(uid: int) -> None:
    """Makes the calling process an ordinary user for good and hides its memory; keeps the user id if it is not root.

    The runner calls this after `Executor.open`: the sandbox's fork server has been started by then and stays root.
    """
    if os.geteuid() == 0:
        syscalls.become_user(uid)
        if 0 in os.getresuid() or 0 in os.getresgid():
            raise PermissionError("the runner could not give up root")
    if syscalls.supported():
        syscalls.try_prctl(syscalls.PR_SET_DUMPABLE, 0)
        syscalls.try_prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
