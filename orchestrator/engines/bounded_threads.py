"""Runs blocking calls from async code in a bounded number of threads, with a limit on how long callers wait.

A thread cannot be killed. A call that was given up learns so from its `Deadline`, which it checks between steps, so that it
stops half-way instead of finishing work that nobody waits for.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class GivenUp(Exception):
    """Nobody is waiting for this call any more."""


class Deadline:
    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._given_up = threading.Event()

    @property
    def left_s(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def give_up(self) -> None:
        self._given_up.set()

    def check(self) -> None:
        """Raises `GivenUp` if there is no point in going on."""
        if self._given_up.is_set() or not self.left_s:
            raise GivenUp


class BoundedThreads:
    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=name)

    async def call(self, function: Callable[[Deadline], T], *, limit_s: float) -> T:
        """The function's result. Raises TimeoutError after `limit_s`, which includes waiting for a free thread."""
        deadline = Deadline(limit_s)

        def step() -> T:
            deadline.check()
            return function(deadline)

        future = asyncio.get_running_loop().run_in_executor(self._pool, step)
        try:
            # Not `wait_for`: before Python 3.12 it returns the result of a call that has just ended to a caller that was
            # cancelled, which then goes on.
            async with asyncio.timeout(limit_s):
                return await future
        except (GivenUp, TimeoutError) as error:
            deadline.give_up()
            raise TimeoutError from error
        except asyncio.CancelledError:
            deadline.give_up()
            raise

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


async def stream_from_thread(
    items: Callable[[], Iterator[T]], stop: Callable[[], None], *, quiet: tuple[type[BaseException], ...]
) -> AsyncIterator[T]:
    """The items of a blocking iterator, which runs in its own thread. Ends when the iterator ends or raises one of `quiet`.

    `stop` is called from another thread and must make the iterator end. A reader that falls behind loses items.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[T | None] = asyncio.Queue(maxsize=1000)
    stopped = threading.Event()

    def put(item: T | None) -> None:
        if item is None and queue.full():
            queue.get_nowait()
        with contextlib.suppress(asyncio.QueueFull):
            queue.put_nowait(item)

    def pump() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            try:
                for item in items():
                    if stopped.is_set():
                        break
                    loop.call_soon_threadsafe(put, item)
            except quiet:
                pass
            finally:
                loop.call_soon_threadsafe(put, None)

    threading.Thread(target=pump, name="stream", daemon=True).start()
    try:
        while (item := await queue.get()) is not None:
            yield item
    finally:
        stopped.set()
        stop()
