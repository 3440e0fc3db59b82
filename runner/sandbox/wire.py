"""The fixed-size messages between runner and warden. Programs, inputs and outputs travel only as descriptors.

Plain tuples: they are taken apart in every child, whose cost is the number of objects that it touches.
"""

import struct
from enum import IntEnum
from socket import CMSG_SPACE
from typing import NamedTuple, Self

_JOB = struct.Struct("<iiiddQQIIQ")
_PID = struct.Struct("<i")
_REPORT = struct.Struct("<iiiidQi")
_BEGUN = struct.Struct("<II")

LONGEST = 256
FDS = struct.Struct("5i")
"""The descriptors of a job."""
ANCILLARY_BYTES = CMSG_SPACE(FDS.size)

# Descriptor numbers inside a child.
CODE_FD, CONTROL_FD, PEER_FD = 3, 4, 5


class Mode(IntEnum):
    """What the child does with its program."""

    STDIN_TESTS = 0
    CALLS = 1
    JUDGE = 2


class How(IntEnum):
    """Who ended the child."""

    ITSELF = 0
    WALL = 1
    MEMORY = 2
    RUNNER = 3


class Job(NamedTuple):
    """What a waiting child is to do; descriptors follow in the order code, stdin, stdout, stderr, control."""

    pid: int
    """The child that is meant: another one leaves the job alone."""
    mode: int
    """One of `Mode`."""
    uid: int
    """User id to take on, -1 to keep the current one."""
    wall_s: float
    cpu_s: float
    memory_bytes: int
    file_bytes: int
    processes: int
    open_files: int
    code_bytes: int
    """Length of what is on the code descriptor."""

    def pack(self) -> bytes:
        """As bytes."""
        return _JOB.pack(*self)

    @classmethod
    def unpack(cls, message: bytes) -> Self:
        """From bytes."""
        return cls._make(_JOB.unpack(message))


def pack_pid(pid: int) -> bytes:
    """To the warden: end this child. From the warden: this child waits for a job (0: none can be had)."""
    return _PID.pack(pid)


def unpack_pid(message: bytes) -> int:
    """The pid; 0 for what is none."""
    return int(_PID.unpack(message)[0]) if len(message) == _PID.size else 0


def pack_begun(job: Job, page_bytes: int) -> bytes:
    """From the jailed child to the warden, as the eight bytes of an event counter: what it has to watch. Never zero."""
    return _BEGUN.pack(max(1, min(job.memory_bytes // page_bytes, 0xFFFFFFFE)), min(int(job.wall_s) + 1, 0xFFFFFFFE))


def unpack_begun(message: bytes) -> tuple[int, int]:
    """Pages of memory, seconds on the clock."""
    pages, seconds = _BEGUN.unpack(message)
    return pages, seconds


class Report(NamedTuple):
    """What the warden saw when the child was gone; all of it measured by the kernel."""

    how: How
    status: int
    """As wait(2) gives it."""
    jailed: int
    """1 when every layer was on before the program began; otherwise the sandbox failed."""
    leftovers: int
    cpu_s: float
    peak_bytes: int
    next_pid: int = 0
    """The child that waits for the next job; 0 if that one is told of later."""

    def pack(self) -> bytes:
        """As bytes."""
        return _REPORT.pack(*self)

    @classmethod
    def unpack(cls, message: bytes) -> Self:
        """From bytes."""
        how, *rest = _REPORT.unpack(message)
        return cls(How(how), *rest)
