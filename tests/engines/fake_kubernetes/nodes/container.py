"""One container of a pod, executed as a process of this machine, in a mount namespace of its own for its volumes."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

PROJECT = Path(__file__).parents[4]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Mount:
    """A directory or file of this machine, or a file system in memory, at a path of the container."""

    path: str
    source: Path | None = None
    memory_bytes: int | None = None
    read_only: bool = False

    def script(self) -> str:
        path = shlex.quote(self.path)
        if self.source is not None:
            return f"mount --bind {shlex.quote(str(self.source))} {path}"
        size = f"size={self.memory_bytes}," if self.memory_bytes else ""
        mount = f"mount -t tmpfs -o {size}{'ro,' if self.read_only else ''}mode=1777 tmpfs {path}"
        if not PROJECT.is_relative_to(self.path):
            return mount
        # A clone below /tmp is the program that runs here: it is put back into what would cover it.
        project = shlex.quote(str(PROJECT))
        return f"mount --bind {project} /mnt\n{mount}\nmkdir -p {project}\nmount --move /mnt {project}"


def _shadow(path: str) -> str | None:
    """The nearest existing directory above a mount point that does not exist. It is covered: nothing is created here."""
    ancestor = Path(path)
    if ancestor.exists():
        return None
    while not ancestor.exists():
        ancestor = ancestor.parent
    if ancestor == Path("/"):
        raise ValueError(f"{path} cannot be mounted: no directory above it exists on this machine but the root.")
    return str(ancestor)


def mount_script(mounts: Sequence[Mount]) -> str:
    shadows = sorted({shadow for mount in mounts if (shadow := _shadow(mount.path))})
    lines = [f"mount -t tmpfs -o mode=0755 tmpfs {shlex.quote(shadow)}" for shadow in shadows]
    for mount in sorted(mounts, key=lambda one: one.source is None):  # what is in memory may cover the sources of others
        if _shadow(mount.path):
            lines.append(f"mkdir -p {shlex.quote(mount.path)}")
        lines.append(mount.script())
    return "set -e\n" + "\n".join(lines) + '\nexec "$@"\n'


@dataclass
class Container:
    """Its standard output and error go to one file, which stays after its end."""

    command: Sequence[str]
    environment: dict[str, str]
    mounts: Sequence[Mount]
    log: Path
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    out_of_memory: bool = False

    def start(self) -> None:
        own_user = [] if os.geteuid() == 0 else ["--map-root-user"]
        namespace = ["unshare", *own_user, "--mount", "--propagation", "private"]
        inside = ["/bin/sh", "-c", mount_script(self.mounts), "sh", *self.command]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*namespace, "--", *inside],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={"PATH": PATH, **self.environment},
                cwd="/",
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        assert self.process is not None, "the container was not started"
        return self.process.pid

    def exit_code(self) -> int | None:
        """None while it runs; 128 + the signal that ended it."""
        assert self.process is not None, "the container was not started"
        code = self.process.poll()
        return 128 - code if code is not None and code < 0 else code

    def signal(self, number: signal.Signals) -> None:
        """SIGKILL reaches all of its processes, as the end of a cgroup does; other signals its first process."""
        with contextlib.suppress(ProcessLookupError):
            if number is signal.SIGKILL:
                os.killpg(self.pid, number)
            elif self.exit_code() is None:
                os.kill(self.pid, number)

    def memory_bytes(self) -> int:
        """What the kernel would charge it for; 0 once it has ended."""
        with contextlib.suppress(OSError, IndexError):
            pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
            return int(pages) * os.sysconf("SC_PAGE_SIZE")
        return 0

    def cpu_s(self) -> float:
        with contextlib.suppress(OSError, IndexError):
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return 0.0

    def end(self) -> None:
        """Kill it and wait until it is gone."""
        if self.process is not None:
            self.signal(signal.SIGKILL)
            self.process.wait()
