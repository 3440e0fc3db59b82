"""The fixed-size messages between runner and warden. Programs, inputs and outputs travel only as descriptors."""

import struct
from dataclasses import astuple, dataclass
from enum import IntEnum
from typing import Self

_JOB = struct.Struct("<iiddQQII")
_STARTED = struct.Struct("<i")
_REPORT = struct.Struct("<iiiiddQ")

KILL = b"k"
"""From the runner: end the child now."""

MOST_FDS = 8
LONGEST = 256

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


@dataclass(frozen=True)
class Job:
    """One child to start; descriptors follow in the order code, stdin, stdout, stderr, control."""

    mode: Mode
    uid: int
    """User id to take on, -1 to keep the current one."""
    wall_s: float
    cpu_s: float
    memory_bytes: int
    file_bytes: int
    processes: int
    open_files: int

    def pack(self) -> bytes:
        """As bytes."""
        return _JOB.pack(*astuple(self))

    @classmethod
    def unpack(cls, message: bytes) -> Self:
        """From bytes."""
        mode, *rest = _JOB.unpack(message)
        return cls(Mode(mode), *rest)

    @staticmethod
    def fits(message: bytes) -> bool:
        """Is this a job at all? A late `KILL` is not."""
        return len(message) == _JOB.size


def pack_started(pid: int) -> bytes:
    """The child runs under this pid."""
    return _STARTED.pack(pid)


def unpack_started(message: bytes) -> int:
    """The pid of the child."""
    (pid,) = _STARTED.unpack(message)
    return int(pid)


@dataclass(frozen=True)
class Report:
    """What the warden saw when the child was gone; all of it measured by the kernel."""

    how: How
    status: int
    """As wait(2) gives it."""
    jailed: int
    """1 when every layer was on before the program began; otherwise the sandbox failed."""
    leftovers: int
    wall_s: float
    cpu_s: float
    peak_bytes: int

    def pack(self) -> bytes:
        """As bytes."""
        return _REPORT.pack(*astuple(self))

    @classmethod
    def unpack(cls, message: bytes) -> Self:
        """From bytes."""
        how, *rest = _REPORT.unpack(message)
        return cls(How(how), *rest)
