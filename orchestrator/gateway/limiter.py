"""How many calls may be at one (provider, model) at once, and how fast one after the other, found out by trying.

The number grows by one with each answer while others wait, and halves when the provider is crowded, once per round
however many calls report it. From the first trouble on, calls also keep a pace: what the provider was just seen to take,
then a little more in each round. When only few calls of a round are refused, the pace alone is corrected: that is how a
rate limit is met without swinging around it. A pause that the provider asks for holds back everybody. Runs take turns, so
that none starves. Only counts and times: what is sent is not its business.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from orchestrator.clock import Clock

FEW = 0.2
"""When no larger share than this was refused, the pace is corrected and the number of calls is left alone."""
SEEN, SEEN_S = 32, 30.0
"""The pace that a provider takes is measured over so many of the last calls, and so many seconds at most."""
SHORTEST_ROUND_S, LONGEST_ROUND_S = 1.0, 30.0
"""A round is as long as calls take: sooner, the effect of a change cannot be seen."""
PACE_DOWN, PACE_UP, FASTEST_UP = 0.95, 0.1, 1.0
"""The pace falls to this share of what was taken; it grows by so much in the first quiet round, by more in the next."""
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

    number: int
    run_id: str
    began: float
    last_one: bool  #: it took the last place there was
    others_wait: bool


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
        self.pace: float | None = None
        self.paused_until = 0.0
        self.pause_reason = ""
        self._ceiling = ceiling
        self._too_long_s = too_long_s
        self._last_cut = float("-inf")
        self._granted = self._answered = self._refused = 0
        self._starts: OrderedDict[int, float] = OrderedDict()
        self._next_at = 0.0
        self._round_s = 10.0
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

    def try_acquire(self, run_id: str) -> Slot | None:
        """A place if there is one for the taking: nobody waits, and no pace or pause holds calls back."""
        if self._waiting or self.pace is not None or self.in_flight >= int(self.limit) or self.pause_left_s() > 0:
            return None
        return self._take(run_id)

    def release_unused(self, slot: Slot) -> None:
        """The call was not made after all."""
        self._starts.pop(slot.number, None)
        self._give_back()

    def release_well(self, slot: Slot, pause_s: float | None = None, reason: str = "") -> None:
        """The call was answered. `pause_s`: the provider said that its limit is used up for so long."""
        now = self._clock.monotonic()
        self._answered += 1
        self._round_s = min(max(0.8 * self._round_s + 0.2 * (now - slot.began), SHORTEST_ROUND_S), LONGEST_ROUND_S)
        if slot.others_wait and self.pace is not None:
            quiet_rounds = min((now - self._last_cut) / self._round_s, 10.0)
            gain = min(PACE_UP * 2.0**quiet_rounds, FASTEST_UP)
            self.pace *= 1 + gain / max(self.pace * self._round_s, 1.0)
        if slot.last_one or slot.others_wait:
            self.limit = min(self.limit + 1, self._ceiling)
        self._pause(pause_s, reason)
        self._give_back()

    def release_crowded(self, slot: Slot, pause_s: float | None, reason: str) -> None:
        """The provider said "too many" or "overloaded"."""
        self._refused += 1
        self._starts.pop(slot.number, None)
        if slot.began >= self._last_cut and self._clock.monotonic() >= self._last_cut + self._round_s:
            self._cut()
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

    def _cut(self) -> None:
        taken = self._taken_per_s()
        if taken is not None:
            self.pace = taken * PACE_DOWN if self.pace is None else min(max(taken * PACE_DOWN, self.pace / 2), self.pace)
        if taken is None or self._refused > FEW * (self._answered + self._refused):
            self.limit = max(self.limit / 2, 1.0)
        self._answered = self._refused = 0
        self._last_cut = self._clock.monotonic()

    def _taken_per_s(self) -> float | None:
        """How many calls per second went out lately and were not refused; None when there were too few to say."""
        now = self._clock.monotonic()
        recent = [began for began in self._starts.values() if began > now - SEEN_S]
        if len(recent) < 3:
            return None
        return len(recent) / max(now - recent[0], SHORTEST_ROUND_S)

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
            left = max(self.pause_left_s(), self._next_at - self._clock.monotonic())
            if left > 0:
                self._wake_in(left)
                return
            run_id, queue = self._waiting.popitem(last=False)
            future = queue.popleft()
            if queue:
                self._waiting[run_id] = queue
            if future.done():
                continue
            future.set_result(self._take(run_id))

    def _take(self, run_id: str) -> Slot:
        now = self._clock.monotonic()
        self.in_flight += 1
        if self.pace is not None:
            self._next_at = max(self._next_at, now - 1 / self.pace) + 1 / self.pace
        self._granted += 1
        slot = Slot(self._granted, run_id, now, self.in_flight >= int(self.limit), bool(self._waiting))
        self._starts[slot.number] = slot.began
        if len(self._starts) > SEEN:
            self._starts.popitem(last=False)
        return slot

    def _wake_in(self, seconds: float) -> None:
        if self._waker is None or self._waker.done():
            self._waker = asyncio.get_running_loop().create_task(self._wake(seconds))

    async def _wake(self, seconds: float) -> None:
        await self._sleep(seconds)
        self._waker = None
        self._grant()
