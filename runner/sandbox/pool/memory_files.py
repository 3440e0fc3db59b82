"""Memory files through which programs, inputs and outputs reach a child without passing anybody else's memory."""

import fcntl
import os

_SEAL_ALL = 0x1 | 0x2 | 0x4 | 0x8
_ADD_SEALS = 1033


def sealed(content: bytes) -> int:
    """A read-only descriptor of content that nobody can change any more."""
    fd = os.memfd_create("program", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        _write(fd, content)
        os.fchmod(fd, 0o444)
        fcntl.fcntl(fd, _ADD_SEALS, _SEAL_ALL)
        return _reopen(fd, os.O_RDONLY)
    finally:
        os.close(fd)


KEPT_BYTES = 256 * 1024
"""Files that are larger are emptied when a child has ended."""


class Streams:
    """Standard input, output and error of a child, emptied and refilled for each test."""

    def __init__(self) -> None:
        self._fds = [os.memfd_create(name, os.MFD_CLOEXEC) for name in ("stdin", "stdout", "stderr")]
        self._filled = 0
        for fd, mode in zip(self._fds, (0o444, 0o222, 0o222), strict=True):
            os.fchmod(fd, mode)

    def for_child(self) -> list[int]:
        """Descriptors to hand out: input can't be written, output can't be read, and is always appended to."""
        given, out, err = self._fds
        append = os.O_WRONLY | os.O_APPEND
        return [_reopen(given, os.O_RDONLY), _reopen(out, append), _reopen(err, append)]

    def prepare(self, given: bytes) -> None:
        """Fill the input; empty the others."""
        into, out, err = self._fds
        if self._filled > len(given):
            os.ftruncate(into, len(given))
        self._filled = len(given)
        if given:
            _write(into, given)
        for fd in (out, err):
            if _size(fd):
                os.ftruncate(fd, 0)

    def shrink(self) -> None:
        """Give back what is large."""
        for fd in self._fds:
            if _size(fd) > KEPT_BYTES:
                os.ftruncate(fd, 0)
        self._filled = min(self._filled, KEPT_BYTES)

    def sizes(self) -> tuple[int, int]:
        """Bytes on output and error."""
        return _size(self._fds[1]), _size(self._fds[2])

    def output(self, most: int) -> bytes:
        """What is on the output, up to `most` bytes."""
        return os.pread(self._fds[1], most, 0) if most else b""

    def error_tail(self, size: int, most: int) -> str:
        """The end of what is on standard error (`size` bytes), as text."""
        return os.pread(self._fds[2], most, max(0, size - most)).decode(errors="replace") if size else ""

    def close(self) -> None:
        """Give the memory back."""
        for fd in self._fds:
            os.close(fd)
        self._fds = []


class StreamPool:
    """Streams for one child after the other: making files is expensive.

    Each child is handed descriptors of its own, and the one before it is gone by then: nothing but the files is shared.
    """

    def __init__(self) -> None:
        self._free: Streams | None = None
        """A slot takes what it has just given back, so one is enough."""

    def take(self, *, new: bool = False) -> Streams:
        """Empty ones; those of the child before show when they were last read and written, `new` ones do not."""
        if new:
            return Streams()
        streams, self._free = self._free or Streams(), None
        streams.prepare(b"")
        return streams

    def give_back(self, streams: Streams, *, unused: bool) -> None:
        """Those of a child that has ended (or may not have: then they are of no more use)."""
        if unused and self._free is None:
            streams.shrink()
            self._free = streams
        else:
            streams.close()

    def close(self) -> None:
        """Give the memory back."""
        if self._free is not None:
            self._free.close()
            self._free = None


def _size(fd: int) -> int:
    return os.lseek(fd, 0, os.SEEK_END)  # of our own description: nobody else's position moves


def _reopen(fd: int, flags: int) -> int:
    return os.open(f"/proc/self/fd/{fd}", flags | os.O_CLOEXEC)


def _write(fd: int, content: bytes) -> None:
    rest, at = memoryview(content), 0
    while rest:
        done = os.pwrite(fd, rest, at)
        rest, at = rest[done:], at + done
