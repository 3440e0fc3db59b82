"""`python -m tests.e2e.without_netlink PROGRAM ARGUMENT...` becomes PROGRAM, which cannot watch the network interfaces.

Chromium lets requests fail with ERR_NETWORK_CHANGED whenever an interface comes or goes, also requests to 127.0.0.1, and an
engine makes interfaces for every network and container. Without netlink sockets it takes the machine for always connected.
"""

from __future__ import annotations

import errno
import os
import socket
import sys

from runner.sandbox.kernel import bpf, syscalls
from runner.sandbox.kernel.seccomp import AUDIT_ARCH, Filter

SOCKET = {"x86_64": 41, "aarch64": 198}
"""The number of the system call `socket`, for each architecture."""


def possible() -> bool:
    """Whether this machine has such sockets and a filter for them."""
    return sys.platform == "linux" and syscalls.ARCH in SOCKET


def no_netlink(arch: str) -> bytes:
    """A filter that refuses netlink sockets as a kernel without them does, and allows everything else."""
    out = bpf.Assembler()
    for offset, value in ((bpf.ARCHITECTURE, AUDIT_ARCH[arch]), (bpf.NUMBER, SOCKET[arch]), (bpf.low(0), socket.AF_NETLINK)):
        out.load(offset)
        out.test(bpf.EQUAL, value, None, "allow")
    out.answer(bpf.refuse(errno.EAFNOSUPPORT))
    out.label("allow")
    out.answer(bpf.ALLOW)
    return out.assemble()


if __name__ == "__main__":
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    Filter(no_netlink(syscalls.ARCH)).install()
    os.execv(sys.argv[1], sys.argv[1:])
