"""How many calls may be at one (provider, model) at once, and how fast one after the other, found out by trying.

Whether a provider takes a call is known long before its answer: a refusal comes at once. So what counts is how calls are
received. The number at once grows by one with each call that is received while others wait, and halves when calls are
refused, but not below what the provider has taken. From the first refusal on, calls also keep a pace. It grows a little with
each call that is received and falls more with each refusal, so that about one call in twenty is refused when the pace meets
the provider's rate, however long calls take. After an outage it is back at the old pace quickly. A pause that the provider
asks for holds back everybody; what was saved up in it is sent afterwards. Runs take turns, so that none starves. Only counts
and times: what is sent is not its business.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from orchestrator.clock import Clock

REFUSED_SHARE = 0.05
"""The share of calls that a provider refuses when the pace is as it should be; less when each refusal costs a pause."""
MEMORY = (12, 20)
"""One call moves the pace by one part in so many: the fewer the slower it is, but not fewer than are out without a word."""
SEEN_S = 5.0
"""The first pace is what a provider received in so many seconds."""
SLOWEST = 0.05
"""Calls per second that are tried whatever the provider says."""
SHORTEST_WORD_S, LONGEST_WORD_S = 1.0, 60.0
"""A call not refused for twice as long as refusals take was received: some servers say nothing before the answer."""
SAVED_S = 60.0
"""So much of a pause is made up for afterwards."""
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
    last_one: bool  #: it took the last place there was
    others_wait: bool
    made_up: bool = False  #: it was sent for a time in which none could be sent
    received: bool = False


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
        self._clock = clock
        self._sleep = sleep
        self._out: OrderedDict[int, Slot] = OrderedDict()
        """Calls of which nothing was heard yet, oldest first."""
        self._received: deque[float] = deque()
        self._received_now = 0
        self._cut_at = float("-inf")
        self._well_at: float | None = None
        self._streak = 0
        self._next_at = 0.0
        self._saved_s = 0.0
        self._trust = 1.0
        self._paced_at = float("inf")
        self._finding = False
        self._pause_s = 0.0
        self._word_s = SHORTEST_WORD_S
        self._waiting: OrderedDict[str, deque[asyncio.Future[Slot]]] = OrderedDict()
        self._waker: asyncio.Task[None] | None = None
        self._wakes_at = float("inf")

    @property
    def queued(self) -> int:
        return sum(len(queue) for queue in self._waiting.values())

    async def acquire(self, run_id: str, *, again: bool = False) -> Slot:
        """Wait for this run's turn; who was refused and tries `again` is next. Raises `PausedTooLong` when it is far off."""
        if self.pause_left_s() > self._too_long_s:
            raise PausedTooLong(self.pause_reason, self.pause_left_s())
        future: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
        queue = self._waiting.setdefault(run_id, deque())
        if again:
            queue.appendleft(future)
            self._waiting.move_to_end(run_id, last=False)
        else:
            queue.append(future)
        self._grant()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.release_unused(future.result())
            raise

    def try_acquire(self, run_id: str) -> Slot | None:
        """A place if there is one for the taking: nobody waits, and no pace or pause holds calls back."""
        if self._waiting or self.pace is not None or self.in_flight >= int(self.limit) or self.pause_left_s() > 0:
            return None
        return self._take(run_id)

    def received(self, slot: Slot) -> None:
        """The provider took the call and is working on it."""
        if not slot.received:
            self._note_received(slot)
            self._grant()

    def release_unused(self, slot: Slot) -> None:
        """The call was not made after all."""
        self._give_back(slot)

    def release_well(self, slot: Slot, pause_s: float | None = None, reason: str = "") -> None:
        """The call was answered. `pause_s`: the provider said that its limit is used up for so long."""
        self._pause(pause_s, reason)
        if not slot.received:
            self._note_received(slot)
        self._give_back(slot)

    def release_crowded(self, slot: Slot, pause_s: float | None, reason: str) -> None:
        """The provider said "too many" or "overloaded"."""
        self._pause_s += 0.2 * ((pause_s or 0.0) - self._pause_s)
        took_s = 2 * (self._clock.monotonic() - slot.began) + 0.5
        self._word_s += 0.2 * (min(max(took_s, SHORTEST_WORD_S), LONGEST_WORD_S) - self._word_s)
        self._slow_down(slot)
        self._pause(pause_s, reason)
        self._give_back(slot)

    def release(self, slot: Slot) -> None:
        """The call failed in a way that says nothing about the rate, or was not made."""
        self._give_back(slot)

    def pause_left_s(self) -> float:
        return max(self.paused_until - self._clock.monotonic(), 0.0)

    async def close(self) -> None:
        if self._waker is not None:
            self._waker.cancel()
            await asyncio.gather(self._waker, return_exceptions=True)

    def _note_received(self, slot: Slot) -> None:
        slot.received = True
        self._out.pop(id(slot), None)
        self._received_now += 1
        now = self._clock.monotonic()
        self._received.append(slot.began)
        while self._received and self._received[0] < now - SEEN_S:
            self._received.popleft()
        if slot.last_one or slot.others_wait:
            self.limit = min(self.limit + 1, self._ceiling)
        if slot.made_up:
            self._trust = min(self._trust * 1.02 + 0.01, 1.0)
        if self.pace is not None and slot.others_wait:
            self._streak += 1
            share = self._share()
            self.pace *= 1.1 if self._finding else 1 + share / self._memory() * 2 ** min(int(self._streak * share), 5)
            if self._well_at is not None and self.pace < self._well_at:
                self.pace = min(self.pace * 1.5, self._well_at)

    def _slow_down(self, slot: Slot) -> None:
        now, self._saved_s = self._clock.monotonic(), 0.0
        if slot.began >= self._cut_at and now >= self._cut_at + self._word_s:  # once for all that were out together
            self._cut_at = now
            self.limit = max(self.limit / 2, self._received_now + 1.0)
        if self.pace is None:
            recent = [began for began in self._received if began > now - SEEN_S]
            self.pace = max(len(recent) / max(now - recent[0], 1.0) if recent else 0.0, 1.0)
            self._paced_at, self._finding = now, not recent
        elif slot.made_up:
            self._trust /= 4  # it saves nothing up for us
        elif slot.began >= self._paced_at:
            if self._streak >= MEMORY[1]:
                self._well_at = 0.9 * self.pace
            elif self._well_at is not None and self._streak:
                self._well_at *= 0.7  # it is not well there any more
            self.pace = max(self.pace * (0.7 if self._finding else 1 - 1 / self._memory()), SLOWEST)
            self._finding = False
        self._streak = 0

    def _memory(self) -> float:
        return max(MEMORY[0], min(MEMORY[1], 10 * (self.pace or 0.0)), len(self._out))

    def _share(self) -> float:
        return min(REFUSED_SHARE, 1 / (20 * self._pause_s * self.pace)) if self.pace and self._pause_s else REFUSED_SHARE

    def _give_back(self, slot: Slot) -> None:
        self._out.pop(id(slot), None)
        if slot.received:
            self._received_now -= 1
        self.in_flight -= 1
        self._grant()

    def _pause(self, pause_s: float | None, reason: str) -> None:
        if pause_s is None:
            return
        until = self._clock.monotonic() + min(pause_s, LONGEST_PAUSE_S)
        if until <= self.paused_until:
            return
        longer_s = until - max(self.paused_until, self._clock.monotonic())
        self._saved_s = min(self._saved_s + self._trust * longer_s, SAVED_S)
        self.paused_until, self.pause_reason = until, reason
        if self.pause_left_s() > self._too_long_s:
            for queue in self._waiting.values():
                for future in queue:
                    if not future.done():
                        future.set_exception(PausedTooLong(reason, self.pause_left_s()))
            self._waiting.clear()

    def _grant(self) -> None:
        self._notice_received()
        while self._waiting:
            now = self._clock.monotonic()
            held = max(self.pause_left_s(), self._next_at - now)
            if held > 0:
                self._wake_in(held)
                return
            if self.in_flight >= int(self.limit):
                if self._out:
                    self._wake_in(next(iter(self._out.values())).began + self._word_s - now)
                return
            run_id, queue = self._waiting.popitem(last=False)
            future = queue.popleft()
            if queue:
                self._waiting[run_id] = queue
            if future.done():
                continue
            future.set_result(self._take(run_id))

    def _notice_received(self) -> None:
        """No word is a good word after a while."""
        heard = self._clock.monotonic() - self._word_s
        while self._out:
            slot = next(iter(self._out.values()))
            if slot.began > heard:
                return
            self._note_received(slot)

    def _take(self, run_id: str) -> Slot:
        now = self._clock.monotonic()
        self.in_flight += 1
        made_up = False
        if self.pace is not None:
            gap = 1 / self.pace
            made_up = self._saved_s > gap
            earliest = now - gap - self._saved_s
            if self._next_at > earliest:
                self._saved_s = max(now - gap - self._next_at, 0.0)
            self._next_at = max(self._next_at, earliest) + gap
        slot = Slot(run_id, now, self.in_flight >= int(self.limit), bool(self._waiting), made_up)
        self._out[id(slot)] = slot
        return slot

    def _wake_in(self, seconds: float) -> None:
        at = self._clock.monotonic() + max(seconds, 0.001)
        if self._waker is not None and not self._waker.done():
            if self._wakes_at <= at + 0.001:
                return
            self._waker.cancel()
        self._wakes_at = at
        self._waker = asyncio.get_running_loop().create_task(self._wake(max(seconds, 0.001)))

    async def _wake(self, seconds: float) -> None:
        await self._sleep(seconds)
        self._waker = None
        self._grant()
