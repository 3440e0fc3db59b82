"""Limits on blocking calls: nobody waits longer than told, and work that nobody waits for stops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from orchestrator.engines.bounded_threads import BoundedThreads, Deadline, GivenUp, stream_from_thread

pytestmark = pytest.mark.anyio


async def test_an_answer_and_an_error_come_through() -> None:
    threads = BoundedThreads(2, "test")
    assert await threads.call(lambda _: 7, limit_s=60) == 7

    def fail(_: Deadline) -> None:
        raise LookupError("x")

    with pytest.raises(LookupError):
        await threads.call(fail, limit_s=60)
    threads.close()


async def test_a_slow_call_is_given_up_and_told_so() -> None:
    threads = BoundedThreads(1, "test")
    release, stopped = threading.Event(), threading.Event()

    def slow(deadline: Deadline) -> None:
        release.wait(60)
        try:
            deadline.check()
        except GivenUp:
            stopped.set()
            raise

    with pytest.raises(TimeoutError):
        await threads.call(slow, limit_s=0.1)
    with pytest.raises(TimeoutError):  # waiting for a free thread counts
        await threads.call(lambda _: pytest.fail("must not run"), limit_s=0.1)
    assert not stopped.is_set()  # neither waited for the slow one
    release.set()
    assert await asyncio.to_thread(stopped.wait, 60)
    assert await threads.call(lambda _: 1, limit_s=60) == 1
    threads.close()


async def test_a_cancelled_caller_gives_up_too() -> None:
    threads = BoundedThreads(1, "test")
    seen: list[Deadline] = []
    release = threading.Event()

    def slow(deadline: Deadline) -> None:
        seen.append(deadline)
        release.wait(60)

    task = asyncio.create_task(threads.call(slow, limit_s=60))
    while not seen:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(GivenUp):
        seen[0].check()
    release.set()
    threads.close()


@pytest.mark.parametrize("steps", range(6))
async def test_a_caller_cancelled_when_the_answer_arrives_does_not_go_on(steps: int) -> None:
    """Whichever step of the event loop the cancellation meets: a loop that is told to stop must not miss it."""
    threads, ended = BoundedThreads(1, "test"), threading.Event()
    asking = asyncio.create_task(threads.call(lambda _: 7, limit_s=60))
    await asyncio.sleep(0)
    threads._pool.submit(ended.set)
    assert ended.wait(60)  # the loop stands still meanwhile, so the answer waits for its next step
    for _ in range(steps):
        await asyncio.sleep(0)
    if asking.cancel():
        with pytest.raises(asyncio.CancelledError):
            await asking
    else:
        assert await asking == 7
    threads.close()


async def test_a_stream_ends_with_its_source_and_on_quiet_errors() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise LookupError

    assert [item async for item in stream_from_thread(items, lambda: None, quiet=(LookupError,))] == [1, 2]


async def test_leaving_a_stream_stops_its_source() -> None:
    stop, ended = threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        yield 1
        stop.wait(60)
        ended.set()

    stream = stream_from_thread(items, stop.set, quiet=())
    assert await anext(stream) == 1
    await stream.aclose()  # type: ignore[attr-defined]
    assert await asyncio.to_thread(ended.wait, 60)


async def test_a_reader_that_falls_behind_still_learns_of_the_end() -> None:
    seen = []
    async for item in stream_from_thread(lambda: iter(range(1, 5001)), lambda: None, quiet=()):
        await asyncio.sleep(0.05 if not seen else 0)
        seen.append(item)
    assert 1 <= len(seen) <= 5000
