"""Which files a program may access: a Landlock ruleset of read-only folders, created once and inherited."""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from runner.sandbox.kernel import syscalls

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_REMOVE, _MAKE_FOLDER, _MAKE_FILE, _MAKE_LINK, _REFER = 1 << 4 | 1 << 5, 1 << 7, 1 << 8, 1 << 12, 1 << 13
FOR_WRITING = 3
"""From this ABI on Landlock can refuse truncation, so programs may be allowed to write files."""
CONFINES_SIGNALS = 6
_ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | 1 << 15
_RULE_PATH_BENEATH = 1
_QUIET_FLAGS = 5
"""ABI 7: do not log refusals in the host's audit log."""


@dataclass(frozen=True)
class Grant:
    """Rights on a file, or on a folder and everything below it."""

    path: str
    rights: int


def readable(path: str) -> Grant:
    """Allows reading a file, or listing and reading a folder."""
    return Grant(path, READ_FILE | READ_DIR)


def executable(path: str) -> Grant:
    """Allows reading and executing a file, or everything below a folder."""
    return Grant(path, EXECUTE | READ_FILE | READ_DIR)


def writable(path: str) -> Grant:
    """Allows creating, changing and removing files and folders below it; no devices, sockets or pipes."""
    making = _REMOVE | _MAKE_FOLDER | _MAKE_FILE | _MAKE_LINK | _REFER
    return Grant(path, READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | making)


def abi() -> int:
    """Returns the kernel's Landlock ABI; 0 for none (old kernel, disabled, or refused by a container)."""
    if not syscalls.supported():
        return 0
    try:
        return max(0, syscalls.syscall("landlock_create_ruleset", None, 0, 1))
    except OSError:
        return 0


def make_ruleset(version: int, grants: Iterable[Grant]) -> int:
    """Creates a ruleset that refuses every file access that the kernel can refuse, except the grants; returns a
    descriptor."""
    rights = (1 << 13) - 1
    rights |= sum(1 << bit for needed, bit in ((2, 13), (3, 14), (5, 15)) if version >= needed)
    attributes = struct.pack("<Q", rights)
    if version >= 4:
        attributes += struct.pack("<Q", 3)  # no TCP bind, no TCP connect
    if version >= 6:
        attributes += struct.pack("<Q", 3)  # no abstract sockets, no signals to outside processes
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    ruleset = syscalls.syscall("landlock_create_ruleset", buffer, len(attributes), 0)
    os.set_inheritable(ruleset, False)
    for grant in grants:
        _add(ruleset, grant, rights)
    return ruleset


def _add(ruleset: int, grant: Grant, handled: int) -> None:
    try:
        target = os.open(grant.path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a folder that does not exist needs no rule
    try:
        rights = grant.rights & handled
        if not stat.S_ISDIR(os.fstat(target).st_mode):
            rights &= _ON_FILES
        rule = struct.pack("<Qi", rights, target)
        syscalls.syscall("landlock_add_rule", ruleset, _RULE_PATH_BENEATH, ctypes.create_string_buffer(rule, len(rule)), 0)
    finally:
        os.close(target)


def restriction(ruleset: int, version: int) -> syscalls.Call:
    """Returns the call that applies the ruleset to the calling process, for good."""
    return syscalls.Call("landlock_restrict_self", ruleset, _QUIET_FLAGS if version >= 7 else 0)
