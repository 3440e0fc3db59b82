"""The walls around one child: limits, user id, Landlock, seccomp, in the one order in which they work.

A step that fails ends the child before any untrusted line runs. The walls only ever get higher: nothing in here can
be undone by the process that called it.
"""

import os
import resource
import signal
from dataclasses import dataclass

from runner.sandbox import kernel, landlock
from runner.sandbox.seccomp import Filter
from runner.sandbox.wire import CODE_FD, CONTROL_FD, PEER_FD, Job, Mode

RULESET_FD, JAILED_FD, FIRST_LIBRARY_FD = 6, 7, 8

ADDRESS_SLACK = 1 << 30
"""Address space on top of the memory limit, for thread stacks that are mapped and hardly touched; what is really
occupied is watched by the warden."""


@dataclass(frozen=True)
class Walls:
    """What a zygote prepares once for all its children."""

    landlock_abi: int
    filter: Filter
    """Seccomp is not optional."""
    judge_filter: Filter
    address_bytes: int
    """Address space of the zygote itself."""
    threads_of_uid: int
    """Threads that this user id already has when slots have no id of their own, else 0."""
    library_fds: int
    """How many descriptors of library folders stay open, from FIRST_LIBRARY_FD on."""
    folder: str
    """The empty working directory."""


def enter(job: Job, fds: list[int], walls: Walls) -> None:
    """Turn the calling, freshly forked process into a jailed one."""
    _arrange_descriptors(fds, walls)
    _limit(job, walls)
    if job.uid >= 0:
        os.setgroups([])
        os.setresgid(job.uid, job.uid, job.uid)
        os.setresuid(job.uid, job.uid, job.uid)
        _set(resource.RLIMIT_NPROC, job.processes)
    elif walls.threads_of_uid:
        _set(resource.RLIMIT_NPROC, walls.threads_of_uid + 2 * job.processes)
    # A change of user id resets both of these, so they come after it.
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.try_prctl(kernel.PR_SET_DUMPABLE, 0)
    if walls.landlock_abi:
        landlock.restrict_self(RULESET_FD, walls.landlock_abi)
    os.close(RULESET_FD)
    (walls.judge_filter if job.mode is Mode.JUDGE else walls.filter).install(os.getpid())
    os.write(JAILED_FD, (1).to_bytes(8, "little"))
    os.close(JAILED_FD)


def _arrange_descriptors(fds: list[int], walls: Walls) -> None:
    code, given, out, err, control = fds
    for source, target in ((given, 0), (out, 1), (err, 2), (code, CODE_FD), (control, CONTROL_FD)):
        os.dup2(source, target, inheritable=False)
    os.close(PEER_FD)  # judges receive it later
    kernel.close_from(FIRST_LIBRARY_FD + walls.library_fds)


def _limit(job: Job, walls: Walls) -> None:
    seconds = int(job.cpu_s) + 1
    _set(resource.RLIMIT_AS, walls.address_bytes + job.memory_bytes + ADDRESS_SLACK)
    _set(resource.RLIMIT_CPU, seconds, seconds + 1)
    _set(resource.RLIMIT_FSIZE, job.file_bytes)
    _set(resource.RLIMIT_NOFILE, job.open_files)


def _set(kind: int, soft: int, hard: int | None = None) -> None:
    """Lower a limit; a limit that is lower already stays."""
    wanted = soft if hard is None else hard
    _, ceiling = resource.getrlimit(kind)
    if ceiling != resource.RLIM_INFINITY:
        wanted = min(wanted, ceiling)
    resource.setrlimit(kind, (min(soft, wanted), wanted))


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
