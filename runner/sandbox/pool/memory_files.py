"""Memory files that carry programs, inputs and outputs to and from a child without passing through another process."""

import fcntl
import os
from collections.abc import Sequence

_SEAL_ALL = 0x1 | 0x2 | 0x4 | 0x8
_ADD_SEALS = 1033


def sealed(content: bytes) -> int:
    """Returns a read-only descriptor of immutable content."""
    fd = os.memfd_create("program", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        _write(fd, content)
        os.fchmod(fd, 0o444)
        fcntl.fcntl(fd, _ADD_SEALS, _SEAL_ALL)
        return _reopen(fd, os.O_RDONLY)
    finally:
        os.close(fd)


KEPT_BYTES = 256 * 1024
"""Larger files are emptied when a child has ended."""


class Streams:
    """Standard input, output and error of a child, emptied and refilled for each test; further inputs, each in its own file,
    for tests that are run in one turn."""

    def __init__(self) -> None:
        self._fds = [os.memfd_create(name, os.MFD_CLOEXEC) for name in ("stdin", "stdout", "stderr")]
        self._filled = 0
        self._more: list[int] = []
        self._held: list[bytes] = []
        """What is in each of the further files."""
        for fd, mode in zip(self._fds, (0o444, 0o222, 0o222), strict=True):
            os.fchmod(fd, mode)

    def for_child(self) -> list[int]:
        """Returns descriptors for the child: input cannot be written; output cannot be read, and is always appended to."""
        stdin, out, err = self._fds
        append = os.O_WRONLY | os.O_APPEND
        return [_reopen(stdin, os.O_RDONLY), _reopen(out, append), _reopen(err, append)]

    def more_for_child(self, inputs: Sequence[bytes]) -> list[int]:
        """Returns a descriptor of a file with each input; they cannot be written either."""
        self.fill(inputs)
        return [_reopen(fd, os.O_RDONLY) for fd in self._more[: len(inputs)]]

    def fill(self, inputs: Sequence[bytes]) -> None:
        """Puts each input into a file of its own, the first ones first."""
        for index, content in enumerate(inputs):
            if index == len(self._more):
                self._more.append(os.memfd_create("stdin", os.MFD_CLOEXEC))
                self._held.append(b"")
                os.fchmod(self._more[index], 0o444)
            if self._held[index] is not content:
                if len(self._held[index]) > len(content):
                    os.ftruncate(self._more[index], len(content))
                self._held[index] = content
                _write(self._more[index], content)

    def prepare(self, stdin: bytes) -> None:
        """Fills the input and empties the others."""
        into, out, err = self._fds
        if self._filled > len(stdin):
            os.ftruncate(into, len(stdin))
        self._filled = len(stdin)
        if stdin:
            _write(into, stdin)
        for fd in (out, err):
            if _size(fd):
                os.ftruncate(fd, 0)

    def shrink(self) -> None:
        """Empties large files."""
        for fd in self._fds:
            if _size(fd) > KEPT_BYTES:
                os.ftruncate(fd, 0)
        self._filled = min(self._filled, KEPT_BYTES)

    def sizes(self) -> tuple[int, int]:
        """Bytes on output and error."""
        return _size(self._fds[1]), _size(self._fds[2])

    def output(self, most: int) -> bytes:
        """Returns up to `most` bytes of the output."""
        return os.pread(self._fds[1], most, 0) if most else b""

    def error_tail(self, size: int, most: int) -> str:
        """Returns the end of standard error (`size` bytes long) as text."""
        return os.pread(self._fds[2], most, max(0, size - most)).decode(errors="replace") if size else ""

    def errors(self, start: int, end: int) -> str:
        """Returns a part of standard error as text."""
        return os.pread(self._fds[2], end - start, start).decode(errors="replace")

    def close(self) -> None:
        """Frees the memory."""
        for fd in (*self._fds, *self._more):
            os.close(fd)
        self._fds, self._more = [], []


class StreamPool:
    """Reuses streams for one child after the other, because creating files is expensive.

    Each child gets its own descriptors, and the previous child is gone by then, so only the files are shared.
    """

    def __init__(self) -> None:
        self._free: Streams | None = None
        """A slot takes what it has just given back, so one is enough."""

    def take(self, *, new: bool = False) -> Streams:
        """Returns empty streams. Reused ones show when the previous child last read and wrote them; `new` ones do not."""
        if new:
            return Streams()
        streams, self._free = self._free or Streams(), None
        streams.prepare(b"")
        return streams

    def give_back(self, streams: Streams, *, unused: bool) -> None:
        """Takes back the streams of a child; unless it has certainly ended (`unused`), they are closed."""
        if unused and self._free is None:
            streams.shrink()
            self._free = streams
        else:
            streams.close()

    def close(self) -> None:
        """Frees the memory."""
        if self._free is not None:
            self._free.close()
            self._free = None


def _size(fd: int) -> int:
    return os.lseek(fd, 0, os.SEEK_END)  # our own file description: nobody else's position moves


def _reopen(fd: int, flags: int) -> int:
    return os.open(f"/proc/self/fd/{fd}", flags | os.O_CLOEXEC)


def _write(fd: int, content: bytes) -> None:
    rest, at = memoryview(content), 0
    while rest:
        done = os.pwrite(fd, rest, at)
        rest, at = rest[done:], at + done
