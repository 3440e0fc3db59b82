"""A control group for each supervisor's children, if one can be created: the kernel then counts and limits memory and
processes of a whole execution, however many processes it has. A group is reused by the next execution once it is empty.

The fork server creates one group for the sandbox below its own, and each supervisor an execution group inside it. A child
joins the execution group itself, before it has a job. Version 2 forbids processes next to groups that have controllers: the
processes of the fork server's own group are then moved to a side group, provided these are only the runner and the fork
server, or the group is a container's.
"""

import contextlib
import os
import signal
import time
from dataclasses import dataclass

NEEDED = ("memory", "pids")
PREFIX, ASIDE = "benchyard-", "benchyard-own"
CONTAINERS_OWN = "/sys/fs/cgroup"
"""A group at this path that is not the machine's root is a container's: everything in it belongs to the run."""
INTERPRETER_BYTES = 32 << 20
"""What a forked interpreter is charged for before its program asks for anything."""
REMOVE_TRIES = 100


class NoCgroupError(Exception):
    """No group can be created here; the message says why."""


@dataclass(frozen=True)
class CgroupLocation:
    """Where groups can be created: one folder for all controllers (version 2), or one for each (version 1)."""

    version: int
    folders: dict[str, str]

    @property
    def distinct(self) -> list[str]:
        """Returns each folder once."""
        return sorted(set(self.folders.values()))


def find(mounts: str, own: str) -> CgroupLocation:
    """Finds the folders of the calling process's own groups from /proc/self/mountinfo and /proc/self/cgroup."""
    groups = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        groups.update(dict.fromkeys(controllers.split(","), path))
    unified: str | None = None
    folders: dict[str, str] = {}
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        root, point = before.split()[3:5]
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2" and "" in groups:
            unified = _below(point, root, groups[""])
        elif kind == "cgroup":
            for name in NEEDED:
                if name in options.split(",") and name in groups:
                    folders[name] = _below(point, root, groups[name])
    if all(name in folders for name in NEEDED):
        return CgroupLocation(1, folders)
    if unified is None or folders:
        raise NoCgroupError("memory and pids controllers are not mounted")
    if os.path.basename(unified) == ASIDE:  # an earlier fork server moved this process: new groups go beside, not below
        unified = os.path.dirname(unified)
    return CgroupLocation(2, dict.fromkeys(NEEDED, unified))


def _below(point: str, root: str, path: str) -> str:
    inner = os.path.relpath(path, root) if path == root or path.startswith(root.rstrip("/") + "/") else "."
    return os.path.normpath(os.path.join(point, inner))


class SandboxGroup:
    """The fork server's group, which contains one execution group for each supervisor."""

    def __init__(self, location: CgroupLocation) -> None:
        self.version = location.version
        self._folders = {name: os.path.join(folder, f"{PREFIX}{os.getpid()}") for name, folder in location.folders.items()}

    @classmethod
    def make(cls) -> "SandboxGroup":
        """Creates and tests it; raises NoCgroupError if that is refused."""
        try:
            location = find(_read("/proc/self/mountinfo"), _read("/proc/self/cgroup"))
            for folder in location.distinct:
                _remove_stale(folder)
            if location.version == 2:
                _delegate(location.distinct[0])
            sandbox_group = cls(location)
            try:
                sandbox_group._fill()
            except BaseException:
                sandbox_group.remove()
                raise
        except (OSError, ValueError, IndexError) as error:
            raise NoCgroupError(f"no writable cgroup: {getattr(error, 'strerror', None) or error}") from None
        return sandbox_group

    def _fill(self) -> None:
        for folder in sorted(set(self._folders.values())):
            os.mkdir(folder, 0o755)
            if self.version == 2:
                _write(folder, "cgroup.subtree_control", "+memory +pids")
        group = self.execution_group()
        trial = os.fork()
        if trial == 0:
            code = 1
            with contextlib.suppress(BaseException):
                group.limit(INTERPRETER_BYTES, 8)
                group.join()
                code = 0
            os._exit(code)
        _, status = os.waitpid(trial, 0)
        group.remove()
        if status:
            raise NoCgroupError("a process could not be moved into a group of its own")

    def execution_group(self) -> "ExecutionGroup":
        """Creates a group for the children of the calling process."""
        own = str(os.getpid())
        return ExecutionGroup(self.version, {name: os.path.join(folder, own) for name, folder in self._folders.items()})

    def remove(self) -> None:
        """Kills the remaining processes and removes the group."""
        for folder in sorted(set(self._folders.values())):
            _remove_sandbox_group(folder)


class ExecutionGroup:
    """A supervisor's group, in which its children run one after the other."""

    def __init__(self, version: int, folders: dict[str, str]) -> None:
        self.version, self._folders = version, folders
        self._distinct = sorted(set(folders.values()))
        for folder in self._distinct:
            os.mkdir(folder, 0o755)
        memory, pids = folders["memory"], folders["pids"]
        self._memory_max = _open(memory, "memory.max" if version == 2 else "memory.limit_in_bytes")
        self._pids_max = _open(pids, "pids.max")
        self._procs_fds = [_open(folder, "cgroup.procs") for folder in self._distinct]
        self._killed_before = 0
        if version == 2:
            for name, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
                with contextlib.suppress(OSError):
                    _write(memory, name, value)

    def join(self) -> None:
        """Moves the calling process into the group; its children start in it."""
        for fd in self._procs_fds:
            os.write(fd, b"0")

    def limit(self, memory_bytes: int, processes: int) -> None:
        """Sets the limits for the next execution."""
        os.write(self._memory_max, b"%d" % (memory_bytes + INTERPRETER_BYTES))
        os.write(self._pids_max, b"%d" % processes)

    def memory_bytes(self) -> int:
        """Memory that the execution occupies now."""
        name = "memory.current" if self.version == 2 else "memory.usage_in_bytes"
        return int(_read(os.path.join(self._folders["memory"], name)))

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed a process of the group for lack of memory since the last call."""
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        text = _read(os.path.join(self._folders["memory"], name))
        killed = next((int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill ")), 0)
        before, self._killed_before = self._killed_before, killed
        return killed > before

    def members(self) -> list[int]:
        """Returns the processes of the group."""
        return _members(self._distinct[0])

    def remove(self) -> None:
        """Removes the group, which must be empty."""
        for folder in self._distinct:
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def _delegate(own: str) -> None:
    """Version 2: enables controllers for the groups below our own."""
    missing = [name for name in NEEDED if name not in _read(os.path.join(own, "cgroup.subtree_control")).split()]
    if not missing:
        return
    if not set(missing) <= set(_read(os.path.join(own, "cgroup.controllers")).split()):
        raise NoCgroupError("memory and pids controllers are not delegated")
    if os.path.exists(os.path.join(own, "cgroup.type")):  # not the root group: no processes beside groups
        _move_aside(own)
    _write(own, "cgroup.subtree_control", " ".join(f"+{name}" for name in missing))


def _move_aside(own: str) -> None:
    members = _members(own)
    if own != CONTAINERS_OWN and not set(members) <= {os.getpid(), os.getppid()}:
        raise NoCgroupError("other processes share this cgroup")
    aside = os.path.join(own, ASIDE)
    with contextlib.suppress(FileExistsError):
        os.mkdir(aside, 0o755)
    for pid in members:
        with contextlib.suppress(ProcessLookupError):
            _write(aside, "cgroup.procs", str(pid))


def _remove_stale(folder: str) -> None:
    """Removes the groups of fork servers that were killed."""
    for name in os.listdir(folder):
        number = name.removeprefix(PREFIX)
        if name.startswith(PREFIX) and number.isdigit() and not os.path.exists(f"/proc/{number}"):
            _remove_sandbox_group(os.path.join(folder, name))


def _remove_sandbox_group(folder: str) -> None:
    for _ in range(REMOVE_TRIES):
        try:
            groups = [entry.path for entry in os.scandir(folder) if entry.is_dir()]
        except OSError:
            return
        for group in (*groups, folder):
            for pid in _members(group):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.rmdir(group)
        if not os.path.exists(folder):
            return
        time.sleep(0.01)


def _members(folder: str) -> list[int]:
    try:
        return [int(pid) for pid in _read(os.path.join(folder, "cgroup.procs")).split()]
    except OSError:
        return []


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()


def _write(folder: str, name: str, value: str) -> None:
    fd = _open(folder, name)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)


def _open(folder: str, name: str) -> int:
    return os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CLOEXEC)
