"""The walls around one child: limits, user id, Landlock, seccomp, in the one order in which they work.

A step that fails ends the child before any untrusted line runs. The walls only ever get higher: nothing in here can
be undone by the process that called it.
"""

import os
import resource
import signal
import sys
from dataclasses import dataclass

from runner.sandbox import kernel, landlock, libraries
from runner.sandbox.cgroup import Pen
from runner.sandbox.landlock import Grant, writable
from runner.sandbox.limits import Allow
from runner.sandbox.seccomp import FOR_JUDGES, Filter, OpenMode, Rules
from runner.sandbox.wire import CODE_FD, CONTROL_FD, FIRST_LIBRARY_FD, PEER_FD, Job, Mode, Post

RULESET_FD, JAILED_FD = 6, 7

_JUDGE = Mode.JUDGE.value
ADDRESS_SLACK = 1 << 30
"""Address space on top of the memory limit, for thread stacks that are mapped and hardly touched; what is really
occupied is watched by the warden."""


@dataclass(frozen=True)
class Walls:
    """What a zygote prepares once for all its wardens."""

    landlock_abi: int
    open_mode: OpenMode
    """Seccomp is not optional."""
    grants: tuple[Grant, ...]
    address_bytes: int
    """Address space of the zygote itself."""
    threads_of_uid: int
    """Threads that this user id already has when slots have no id of their own, else 0."""
    library_fds: int
    """How many descriptors of library folders stay open, from FIRST_LIBRARY_FD on."""
    folder: str
    """The empty working directory."""

    def ruleset(self, post: Post, folder: str) -> int:
        """Which files the children of a warden may reach; a descriptor, -1 without Landlock."""
        if not self.landlock_abi:
            return -1
        more = [*libraries.executables()] if post.allow & Allow.PROCESSES else []
        if post.allow & Allow.FILES:
            more.append(writable(folder))
        return landlock.make_ruleset(self.landlock_abi, [*self.grants, *more])


class Jail:
    """The walls, laid out by the warden; its children only have to enter."""

    def __init__(self, walls: Walls, post: Post, pen: Pen | None, folder: str) -> None:
        self._first_closed = FIRST_LIBRARY_FD + walls.library_fds
        self._address_bytes = walls.address_bytes + ADDRESS_SLACK
        self._threads_of_uid = walls.threads_of_uid
        self._uid, self._pen, self._folder = post.uid, pen, folder
        self._disk = bool(folder)  # what is written to a tmpfs is charged as memory
        confined = walls.landlock_abi >= landlock.CONFINES_SIGNALS
        self._filter = Filter(Rules.for_profile(walls.open_mode, post.allow, post.uid >= 0, confined))
        self._judge_filter = Filter(Rules(walls.open_mode, FOR_JUDGES))
        self._restrict = landlock.restriction(RULESET_FD, walls.landlock_abi) if walls.landlock_abi else None
        kinds = (
            resource.RLIMIT_AS,
            resource.RLIMIT_CPU,
            resource.RLIMIT_FSIZE,
            resource.RLIMIT_NOFILE,
            resource.RLIMIT_NPROC,
        )
        self._ceilings = {kind: _ceiling(kind) for kind in kinds}
        self._warden = os.getpid()

    def enter(self, job: Job, fds: tuple[int, ...]) -> None:
        """Turn the calling process, a fresh fork of the warden, into a jailed one."""
        if self._pen is not None:
            self._pen.limit(job.memory_bytes + 2 * job.file_bytes + self._disk * job.disk_bytes, job.processes)
        code, given, out, err, control = fds
        os.dup2(given, 0, False)
        os.dup2(out, 1, False)
        os.dup2(err, 2, False)
        os.dup2(code, CODE_FD, False)
        os.dup2(control, CONTROL_FD, False)
        os.close(PEER_FD)  # judges receive it later
        kernel.close_from(self._first_closed)
        seconds, uid = int(job.cpu_s) + 1, self._uid
        self._limit(resource.RLIMIT_AS, self._address_bytes + job.memory_bytes)
        self._limit(resource.RLIMIT_CPU, seconds, 1)
        self._limit(resource.RLIMIT_FSIZE, job.file_bytes)
        self._limit(resource.RLIMIT_NOFILE, job.open_files)
        if uid >= 0:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            self._limit(resource.RLIMIT_NPROC, job.processes)
        elif self._threads_of_uid:
            self._limit(resource.RLIMIT_NPROC, self._threads_of_uid + 2 * job.processes)
        if self._folder:
            os.chdir(self._folder)
        # A change of user id resets both of these, so they come after it.
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL.value)
        kernel.try_prctl(kernel.PR_SET_DUMPABLE, 0)
        if os.getppid() != self._warden:
            os._exit(0)  # it died before its death could be told: nobody would watch this process
        if self._restrict is not None:
            self._restrict()
        os.close(RULESET_FD)
        (self._judge_filter if job.mode == _JUDGE else self._filter).install(job.pid)
        os.write(JAILED_FD, job.pack())
        os.close(JAILED_FD)

    def _limit(self, kind: int, soft: int, more: int = 0) -> None:
        """Lower a limit; one that is lower already stays."""
        hard = min(soft + more, self._ceilings[kind])
        resource.setrlimit(kind, (min(soft, hard), hard))


def _ceiling(kind: int) -> int:
    _, hard = resource.getrlimit(kind)
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def drop_privileges(uid: int) -> None:
    """Make the calling process an ordinary user for good and hide its memory; no-op for the id when it is not root.

    The runner calls this after `Executor.open`: the keeper of the sandbox has been started by then and stays root.
    """
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        if 0 in os.getresuid() or 0 in os.getresgid():
            raise PermissionError("the runner could not give up root")
    if kernel.supported():
        kernel.try_prctl(kernel.PR_SET_DUMPABLE, 0)
        kernel.try_prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
