"""The fixed-size messages between runner and supervisor. Programs, inputs and outputs are passed as descriptors only.

Plain tuples, because every child unpacks them and its cost depends on the number of objects that it touches.
"""

import struct
from enum import IntEnum
from socket import CMSG_SPACE
from typing import NamedTuple, Self

_JOB = struct.Struct("<iiddQQIIQII")
_PID = struct.Struct("<i")
_REPORT = struct.Struct("<iiidQi")

BIND_NOW = "LD_BIND_NOW"
"""In the fork server's first environment: it looks symbols up before all forks, not each child. Programs don't see it."""
LONGEST = 256
INLINE_BYTES = 16 * 1024
"""A program up to this size is sent with its job; a longer one in its own file."""
MOST_TOGETHER = 32
"""Up to this many quick tests of a program are run in one turn."""
_ENDED = struct.Struct("<cBII")
ENDED_BYTES = _ENDED.size
_MOST_BYTES = 0xFFFFFFFF
ANCILLARY_BYTES = CMSG_SPACE(4 * (5 + MOST_TOGETHER))

# Descriptor numbers inside a child.
CONTROL_FD, CODE_FD, PEER_FD, FIRST_LIBRARY_FD = 4, 5, 5, 8
FIRST_INPUT_FD = 200
"""Inputs of tests that may be run in one turn; beyond what a program can have itself, so that it loses no number."""


class Mode(IntEnum):
    """What the child does with its program."""

    STDIN_TESTS = 0
    CALLS = 1
    JUDGE = 2


class EndedBy(IntEnum):
    """Who ended the child."""

    ITSELF = 0
    WALL = 1
    MEMORY = 2
    RUNNER = 3
    CPU = 4
    DISK = 5


class Job(NamedTuple):
    """A job for a waiting child. The program follows, and descriptors: stdin, stdout, stderr, control, a long
    program's, and the inputs of tests that may be run in one turn."""

    pid: int
    """The intended child: any other ignores the job."""
    mode: int
    """One of `Mode`."""
    wall_s: float
    cpu_s: float
    memory_bytes: int
    file_bytes: int
    processes: int
    open_files: int
    disk_bytes: int
    code_bytes: int
    """Length of the program if it has its own descriptor, else 0."""
    tests: int
    """How many times it may be run."""

    def pack(self) -> bytes:
        return _JOB.pack(*self)

    @classmethod
    def unpack(cls, message: bytes) -> Self:
        return cls._make(_JOB.unpack_from(message))


class SupervisorSpec(NamedTuple):
    """What a new supervisor is for."""

    uid: int
    """User id of its children, -1 to keep the current one."""
    allow: int
    """One of `Allow`."""
    template: int
    """1 if its children should be forked from a template, if possible."""

    def pack(self) -> str:
        return f"{self.uid} {self.allow} {self.template}"

    @classmethod
    def unpack(cls, name: str) -> Self:
        return cls._make(map(int, name.split()))


JOB_BYTES = _JOB.size


def unpack_fds(data: bytes) -> tuple[int, ...]:
    """Returns the descriptors that came with a job."""
    return struct.unpack(f"{len(data) // 4}i", data)


class Ended(NamedTuple):
    """What a child says of one test of several that it was told to run in one turn."""

    ending: bytes
    status: int
    out_bytes: int
    """Size of the output after the test; that of earlier tests in the turn is in it."""
    err_bytes: int

    @staticmethod
    def pack_of(ending: bytes, status: int, out_bytes: int, err_bytes: int) -> bytes:
        return _ENDED.pack(ending, status, min(out_bytes, _MOST_BYTES), min(err_bytes, _MOST_BYTES))

    @classmethod
    def unpack_all(cls, message: bytes) -> list[Self]:
        return [cls._make(one) for one in _ENDED.iter_unpack(message)]


def pack_pid(pid: int) -> bytes:
    """To the supervisor: end this child. From the supervisor: this child waits for a job (0: no child is available)."""
    return _PID.pack(pid)


def unpack_pid(message: bytes) -> int:
    """Returns the pid; 0 for an invalid message."""
    return int(_PID.unpack(message)[0]) if len(message) == _PID.size else 0


class Report(NamedTuple):
    """The supervisor's report after the child has ended; all of it measured by the kernel."""

    ended_by: EndedBy
    status: int
    """As returned by wait(2)."""
    jailed: int
    """1 if every layer was on before the program started; otherwise the sandbox failed."""
    cpu_s: float
    peak_bytes: int
    next_pid: int = 0
    """The child that waits for the next job; 0 if its pid is sent later."""

    def pack(self) -> bytes:
        return _REPORT.pack(*self)

    @classmethod
    def unpack(cls, message: bytes) -> Self:
        ended_by, *rest = _REPORT.unpack(message)
        return cls(EndedBy(ended_by), *rest)
