"""Parts of `multiprocessing` that need no file. The originals create named semaphores and shared memory in /dev/shm, which
programs cannot reach (and which would outlive them). These use descriptors and mappings that forked processes inherit.
"""

import array
import contextlib
import fcntl
import mmap
import os
import select
import termios
import threading
import time
from typing import Any

RECURSIVE_MUTEX = 0
MOST = 32 * 1024


class Semaphore:
    """Replaces `_multiprocessing.SemLock` with a pipe that holds one byte per available unit.

    If the count exceeds the capacity of a pipe (a queue without a limit), acquiring never waits.
    """

    SEM_VALUE_MAX = 2**31 - 1

    def __init__(self, kind: int, value: int, maxvalue: int, name: str, unlink: bool) -> None:
        self.kind, self.maxvalue, self.name = kind, maxvalue, None
        self.handle, self._back = os.pipe()
        os.set_blocking(self.handle, False)
        self._endless = value > MOST
        os.write(self._back, b"" if self._endless else b"." * value)
        self._depth, self._owner = 0, (0, 0)

    def __del__(self) -> None:
        for fd in (self.handle, self._back):
            with contextlib.suppress(OSError):
                os.close(fd)

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        """Acquires the semaphore; returns False if it is not available (in time)."""
        if self.kind == RECURSIVE_MUTEX and self._is_mine():
            self._depth += 1
            return True
        if self._endless:
            return True
        until = None if timeout is None else time.monotonic() + max(timeout, 0.0)
        while True:
            with contextlib.suppress(BlockingIOError):
                os.read(self.handle, 1)
                self._depth, self._owner = self._depth + 1, (os.getpid(), threading.get_ident())
                return True
            left = None if until is None else until - time.monotonic()
            if not block or (left is not None and left <= 0):
                return False
            waiting = select.poll()
            waiting.register(self.handle, select.POLLIN)
            waiting.poll(None if left is None else left * 1000)

    def __enter__(self) -> bool:
        return self.acquire()

    def release(self) -> None:
        if self._endless:
            return
        if self.kind == RECURSIVE_MUTEX:
            if not self._is_mine():
                raise AssertionError("attempt to release recursive lock not owned by thread")
            if self._depth > 1:
                self._depth -= 1
                return
        elif self._get_value() >= self.maxvalue:
            raise ValueError("semaphore or lock released too many times")
        self._depth -= 1
        os.write(self._back, b".")

    def __exit__(self, *_: object) -> None:
        self.release()

    def _count(self) -> int:
        return self._depth

    def _is_mine(self) -> bool:
        return self._depth > 0 and self._owner == (os.getpid(), threading.get_ident())

    def _is_zero(self) -> bool:
        return self._get_value() == 0

    def _get_value(self) -> int:
        if self._endless:
            return self.maxvalue
        count = array.array("i", [0])
        fcntl.ioctl(self.handle, termios.FIONREAD, count)
        return count[0]

    def _after_fork(self) -> None:
        self._depth = 0


class Arena:
    """Replaces `multiprocessing.heap.Arena`, using anonymous memory."""

    def __init__(self, size: int, fd: int = -1) -> None:
        self.size, self.fd = size, fd
        self.buffer = mmap.mmap(-1, size)


def install() -> None:
    """Imports what processes use and installs these parts; called before the fork of a child that may start processes."""
    import concurrent.futures.process  # noqa: F401
    import multiprocessing.context
    import multiprocessing.heap
    import multiprocessing.pool
    import multiprocessing.popen_fork
    import multiprocessing.queues
    import multiprocessing.sharedctypes
    import multiprocessing.synchronize

    synchronize: Any = multiprocessing.synchronize
    heap: Any = multiprocessing.heap
    synchronize._multiprocessing.SemLock = Semaphore
    heap.Arena = Arena
    multiprocessing.set_start_method("fork")
