"""The fork server: a small process, exec'ed with a clean environment. It forks zygotes, each of which imports the modules
that programs use and then forks one supervisor per slot. None of them ever sees a program, an input, a secret or the
network. The fork server exists because the runner drops root: only the fork server can then replace a zygote that died.
"""

import atexit
import gc
import json
import os
import resource
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

from runner.sandbox.kernel import landlock, process_tree, syscalls
from runner.sandbox.kernel.cgroup import NoCgroupError, SandboxGroup
from runner.sandbox.kernel.seccomp import OpenMode
from runner.sandbox.processes import libraries, supervisor
from runner.sandbox.processes.jail import JailSettings
from runner.sandbox.protocol.messages import BIND_NOW, LONGEST, SupervisorSpec

MIB = 1024 * 1024
STACK_BYTES = 512 * MIB
THREAD_STACK_BYTES = 8 * MIB
LEAVE_S = 3.0
"""How long processes may take to end after their connection is closed."""


def fork_server_main(control_fd: int, settings_text: str) -> NoReturn:
    """Entry point of the exec'ed process."""
    _raise_stack_limit()
    os.environ.pop(BIND_NOW, None)
    settings: dict[str, Any] = json.loads(settings_text)
    control = socket.socket(fileno=control_fd)
    _write_oom_score()
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    syscalls.try_prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    syscalls.try_prctl(syscalls.PR_SET_DUMPABLE, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # ends when the runner closes the connection, whatever the terminal sends
    folder = _empty_folder()
    sandbox_group = _sandbox_group()
    control.send(b"fork server")
    _serve_forks(
        control, lambda flavour, fds: _zygote(socket.socket(fileno=fds[0]), flavour, settings, folder, sandbox_group)
    )
    process_tree.await_children(LEAVE_S)
    process_tree.end_all_children()  # including those of killed supervisors, which this process has inherited
    if isinstance(sandbox_group, SandboxGroup):
        sandbox_group.remove()
    if folder != "/":
        os.rmdir(folder)
    os._exit(0)


def _sandbox_group() -> SandboxGroup | NoCgroupError:
    try:
        return SandboxGroup.make()
    except NoCgroupError as why:
        return why


def _serve_forks(control: socket.socket, start: Callable[[str, list[int]], NoReturn]) -> None:
    """Forks on request and answers with the pid, until the other side closes the connection."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel removes a child when it ends, not at the next request
    while True:
        message, fds, _, _ = socket.recv_fds(control, LONGEST, 2)
        if not message:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return
        try:
            pid = os.fork()
        except OSError:
            pid = -1
        if pid == 0:
            try:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                control.close()
                syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
                start(message.decode(), fds)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        for fd in fds:
            os.close(fd)
        control.send(b"%d" % pid)


def _zygote(
    control: socket.socket, flavour: str, settings: dict[str, Any], folder: str, sandbox_group: SandboxGroup | NoCgroupError
) -> NoReturn:
    from runner.sandbox.inside import instructions, mathematics, prepare
    from runner.sandbox.inside.immortal import make_immortal
    from runner.sandbox.inside.prelude import namespace
    from runner.sandbox.inside.warm_up import warm_up

    try:
        for name in libraries.preloaded(flavour):
            _try_import(name, needed=name == flavour)
        rehearsals = {libraries.MATHEMATICS: mathematics.rehearse, libraries.LANGUAGES: instructions.rehearse}
        if flavour in rehearsals:
            rehearsals[flavour]()
    except ImportError as error:
        control.send(json.dumps({"missing": str(error)[:150]}).encode())
        os._exit(0)
    if settings["no_open"] or not settings["landlock"]:
        for name in libraries.FOR_NO_OPEN:
            _try_import(name)
    libraries.use_plain_importers()
    namespace()
    warm_up()
    abi = landlock.abi() if settings["landlock"] and not settings["no_open"] else 0
    mode = OpenMode.no_open if not abi else OpenMode.by_landlock if abi >= 3 else OpenMode.read_only
    uid = int(settings["uid_base"])
    granted = tuple(libraries.grants(folder)) if abi else ()
    folders = libraries.open_hidden_folders() if uid >= 0 and abi else []
    if len(os.listdir("/proc/self/task")) != 1:
        raise RuntimeError("a zygote must have one thread")
    jail_settings = JailSettings(
        landlock_abi=abi,
        open_mode=mode,
        grants=granted,
        address_bytes=_address_bytes(),
        threads_of_uid=0 if uid >= 0 else _threads_of_this_uid(),
        library_fds=len(folders),
        folder=folder,
    )
    atexit._clear()
    gc.collect()
    make_immortal()
    gc.freeze()
    group = f"version {sandbox_group.version}" if isinstance(sandbox_group, SandboxGroup) else ""
    hello = {
        "landlock": abi,
        "open_mode": mode,
        "uid": uid >= 0,
        "cgroup": group,
        "no_cgroup": "" if group else str(sandbox_group),
    }
    control.send(json.dumps(hello).encode())

    def start(name: str, fds: list[int]) -> NoReturn:
        ours, jobs = (socket.socket(fileno=fd) for fd in fds)
        supervisor.run(
            ours,
            jobs,
            SupervisorSpec.unpack(name),
            jail_settings,
            folders,
            sandbox_group if isinstance(sandbox_group, SandboxGroup) else None,
            prepare,
        )

    _serve_forks(control, start)
    process_tree.await_children(LEAVE_S)  # they clean up first, and would die with this process
    os._exit(0)


def _try_import(name: str, *, needed: bool = False) -> None:
    try:
        import_module(name)
    except Exception as error:  # numpy raises RuntimeError on a processor older than it was built for
        if needed:
            raise ImportError(f"{name}: {error}") from error


def _raise_stack_limit() -> None:
    """Deep recursion through C code needs a large main stack, whose size is fixed at exec."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    stack_bytes = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
    if soft == resource.RLIM_INFINITY or soft < stack_bytes:
        resource.setrlimit(resource.RLIMIT_STACK, (stack_bytes, hard))
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606
    syscalls.small_thread_stacks(THREAD_STACK_BYTES)


def _write_oom_score() -> None:
    """If memory runs out, the kernel must kill a child, not the runner. Must run before the process becomes undumpable."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass  # the container's own limits apply


def _empty_folder() -> str:
    try:
        folder = tempfile.mkdtemp(prefix="benchyard-empty-")
        os.chmod(folder, 0o555)  # noqa: S103
    except OSError:
        return "/"
    return folder


def _address_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _threads_of_this_uid() -> int:
    """RLIMIT_NPROC counts all threads of a user id, so the limit is set relative to the current number."""
    own, count = os.getuid(), 0
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if os.stat(f"/proc/{entry}").st_uid == own or entry == str(os.getpid()):
                    count += len(os.listdir(f"/proc/{entry}/task"))
            except OSError:
                continue
    return count
