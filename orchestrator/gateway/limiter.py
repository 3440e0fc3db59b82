"""How many calls may be at one (provider, model) at once, found out by trying.

Grows while all goes well: quickly up to where trouble was last met, then by one per round. Halves when the provider is
crowded, once per round however many calls report it. A pause that the provider asks for holds back everybody. Runs take
turns, so that none starves. Only counts and times: what is sent is not its business.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from orchestrator.clock import Clock

LONGEST_PAUSE_S = 3600.0
"""However long a provider asks to be left alone, it is asked again after this."""


class PausedTooLong(Exception):
    """The provider wants to be left alone for longer than a call can wait."""

    def __init__(self, reason: str, left_s: float) -> None:
        super().__init__(reason)
        self.reason = reason
        self.left_s = left_s


@dataclass
class Slot:
    """The right to have one call at the provider. Give it back with `Limiter.release`."""

    run_id: str
    began: float
    was_tight: bool


class Limiter:
    def __init__(
        self,
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]],
        initial: float = 16.0,
        ceiling: float = 1000.0,
        too_long_s: float = 900.0,
    ) -> None:
        self.limit = initial
        self.in_flight = 0
        self.paused_until = 0.0
        self.pause_reason = ""
        self._ceiling = ceiling
        self._too_long_s = too_long_s
        self._knee = float("inf")
        self._last_cut = float("-inf")
        self._clock = clock
        self._sleep = sleep
        self._waiting: OrderedDict[str, deque[asyncio.Future[Slot]]] = OrderedDict()
        self._waker: asyncio.Task[None] | None = None

    @property
    def queued(self) -> int:
        return sum(len(queue) for queue in self._waiting.values())

    async def acquire(self, run_id: str) -> Slot:
        """Wait for this run's turn; raises `PausedTooLong` when it is too far away."""
        if self.pause_left_s() > self._too_long_s:
            raise PausedTooLong(self.pause_reason, self.pause_left_s())
        future: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(run_id, deque()).append(future)
        self._grant()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._give_back()
            raise

    def release_well(self, slot: Slot, pause_s: float | None = None, reason: str = "") -> None:
        """The call was answered. `pause_s`: the provider said that its limit is used up for so long."""
        if slot.was_tight:
            self.limit = min(self.limit + (1.0 if self.limit < 0.9 * self._knee else 1.0 / self.limit), self._ceiling)
        self._pause(pause_s, reason)
        self._give_back()

    def release_crowded(self, slot: Slot, pause_s: float | None, reason: str) -> None:
        """The provider said "too many" or "overloaded"."""
        if slot.began >= self._last_cut:
            self._knee = self.limit
            self.limit = max(self.limit / 2, 1.0)
            self._last_cut = self._clock.monotonic()
        self._pause(pause_s, reason)
        self._give_back()

    def release(self, slot: Slot) -> None:
        """The call failed in a way that says nothing about the rate, or was not made."""
        self._give_back()

    def pause_left_s(self) -> float:
        return max(self.paused_until - self._clock.monotonic(), 0.0)

    async def close(self) -> None:
        if self._waker is not None:
            self._waker.cancel()
            await asyncio.gather(self._waker, return_exceptions=True)

    def _give_back(self) -> None:
        self.in_flight -= 1
        self._grant()

    def _pause(self, pause_s: float | None, reason: str) -> None:
        if pause_s is None:
            return
        until = self._clock.monotonic() + min(pause_s, LONGEST_PAUSE_S)
        if until <= self.paused_until:
            return
        self.paused_until, self.pause_reason = until, reason
        if self.pause_left_s() > self._too_long_s:
            for queue in self._waiting.values():
                for future in queue:
                    if not future.done():
                        future.set_exception(PausedTooLong(reason, self.pause_left_s()))
            self._waiting.clear()

    def _grant(self) -> None:
        while self._waiting and self.in_flight < int(self.limit):
            left = self.pause_left_s()
            if left > 0:
                self._wake_in(left)
                return
            run_id, queue = self._waiting.popitem(last=False)
            future = queue.popleft()
            if queue:
                self._waiting[run_id] = queue
            if future.done():
                continue
            self.in_flight += 1
            tight = self.in_flight >= int(self.limit) or bool(self._waiting)
            future.set_result(Slot(run_id, self._clock.monotonic(), tight))

    def _wake_in(self, seconds: float) -> None:
        if self._waker is None or self._waker.done():
            self._waker = asyncio.get_running_loop().create_task(self._wake(seconds))

    async def _wake(self, seconds: float) -> None:
        while seconds > 0:
            await self._sleep(seconds)
            seconds = self.pause_left_s()
        self._waker = None
        self._grant()
