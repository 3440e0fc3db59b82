"""What a command may not do, apart from its container's limits: use the network, or create namespaces or mounts.

The measuring process moves from the container's network to an empty one with its own loopback. That takes two capabilities
that the container has only for this purpose; they are dropped for good before the first command. If the kernel refuses,
commands get local sockets only. A filter refuses what Docker's own would refuse without those capabilities.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import socket
import struct

from runner.sandbox.kernel import bpf, syscalls
from runner.sandbox.kernel.bpf import ALLOW, ANY_BIT, AT_LEAST, EQUAL, Assembler, low, refuse
from runner.sandbox.kernel.seccomp import AF_UNIX, AUDIT_ARCH, CLONE_NEW_ANYTHING, X32_BIT, Filter

CLONE_NEWNET = 0x40000000
CLONE_NEWUSER = 0x10000000
SIOCSIFFLAGS = 0x8914
IFF_UP_RUNNING = 0x41
CAP_KILL, CAP_SETGID, CAP_SETUID = 5, 6, 7
CAPABILITY_VERSION = 0x20080522

_NAMES = (
    "mount umount2 pivot_root sethostname setdomainname unshare setns bpf perf_event_open fanotify_init quotactl "
    "open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr"
)
_REFUSED = {
    "x86_64": (165, 166, 155, 170, 171, 272, 308, 321, 298, 300, 179, 428, 429, 430, 431, 432, 433, 442),
    "aarch64": (40, 39, 41, 161, 162, 97, 268, 280, 241, 262, 60, 428, 429, 430, 431, 432, 433, 442),
}
"""System call numbers of `_NAMES`, in that order."""
_CLONE = {"x86_64": 56, "aarch64": 220}
_SOCKET = {"x86_64": 41, "aarch64": 198}
_CLONE3, _IO_URING_SETUP = 435, 425


def leave_network() -> bool:
    """Moves this process and its children to an empty network with a loopback; returns False if that is not allowed."""
    return _leave(CLONE_NEWNET)


def leave_network_as_user() -> bool:
    """The same for a process that is not root: in a user namespace, in which it keeps its ids."""
    uid, gid = os.geteuid(), os.getegid()
    if not _leave(CLONE_NEWUSER | CLONE_NEWNET):
        return False
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    return True


def _leave(spaces: int) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(spaces) != 0:
        return False
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP_RUNNING))
    return True


def keep_only_needed_capabilities() -> None:
    """Keeps only the capabilities to change users and to kill processes, for good."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    kept = 1 << CAP_KILL | 1 << CAP_SETGID | 1 << CAP_SETUID
    header = struct.pack("Ii", CAPABILITY_VERSION, 0)
    data = struct.pack("6I", kept, kept, 0, 0, 0, 0)
    if libc.capset(header, data) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"capabilities could not be given up: {os.strerror(code)}")


class CommandFilter:
    """Built before the fork. `sockets` allows every kind of socket, because the network is empty or access is intended."""

    def __init__(self, *, sockets: bool, arch: str = syscalls.ARCH) -> None:
        self._filter = Filter(build(arch, sockets=sockets))

    def install(self) -> None:
        """Applies the filter to the calling process, for good."""
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        self._filter.install()


def build(arch: str, *, sockets: bool) -> bytes:
    out = Assembler()
    out.load(bpf.ARCHITECTURE)
    out.test(EQUAL, AUDIT_ARCH[arch], "native", None)
    out.answer(refuse(errno.ENOSYS))
    out.label("native")
    out.load(bpf.NUMBER)
    if arch == "x86_64":
        out.test(AT_LEAST, X32_BIT, "unknown", None)
    out.test(EQUAL, _CLONE3, "unknown", None)  # a filter cannot see its flags; libc falls back to clone
    if not sockets:
        out.test(EQUAL, _IO_URING_SETUP, "unknown", None)
        out.test(EQUAL, _SOCKET[arch], "socket", None)
    out.test(EQUAL, _CLONE[arch], "clone", None)
    for number in _REFUSED[arch]:
        out.test(EQUAL, number, "refused", None)
    out.answer(ALLOW)
    out.label("clone")
    out.load(low(0))
    out.test(ANY_BIT, CLONE_NEW_ANYTHING, "refused", "fine")
    if not sockets:
        out.label("socket")
        out.load(low(0))
        out.test(EQUAL, AF_UNIX, "fine", "refused")
    out.label("fine")
    out.answer(ALLOW)
    out.label("unknown")
    out.answer(refuse(errno.ENOSYS))
    out.label("refused")
    out.answer(refuse(errno.EPERM))
    return out.assemble()
