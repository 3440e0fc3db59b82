"""How many calls may be at one (provider, model) at once, and how fast one after the other: `places` and `pace` put to work.

Whether a provider takes a call is known long before its answer: a refusal comes at once. So what counts is how calls are
received. A pause that the provider asks for holds back everybody. Runs take turns, so that none starves, and who was refused
is next. Only counts and times: what is sent is not its business.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from orchestrator.gateway.pacing.concurrency import Places
from orchestrator.gateway.pacing.rate import Pace, Sent
from orchestrator.system.clock import Clock

SHORTEST_WORD_S, LONGEST_WORD_S = 1.0, 60.0
"""A call not refused for twice as long as refusals take was received: some servers say nothing before the answer."""
LATE_S = 0.05
"""So much lateness of our own is made up for; more would be a burst."""
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
    sent: Sent
    ahead: int  #: calls that the provider had when this one came: those refused meanwhile it never had
    last_one: bool  #: it took the last place there was
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
        self.in_flight = 0
        self.paused_until = 0.0
        self.pause_reason = ""
        self._pace = Pace()
        self._places = Places(initial, ceiling)
        self._too_long_s = too_long_s
        self._clock = clock
        self._sleep = sleep
        self._out: OrderedDict[int, Slot] = OrderedDict()
        """Calls of which nothing was heard yet, oldest first."""
        self._sent = 0
        self._reacted_at = float("-inf")
        self._next_at = 0.0
        self._word_s = SHORTEST_WORD_S
        self._waiting: OrderedDict[str, deque[asyncio.Future[Slot]]] = OrderedDict()
        self._waker: asyncio.Task[None] | None = None
        self._wakes_at = float("inf")

    @property
    def limit(self) -> float:
        """So many may be at the provider at once."""
        return self._places.limit

    @property
    def pace(self) -> float | None:
        """Calls per second, when that is what holds them back."""
        return self._pace.per_s

    @property
    def queued(self) -> int:
        return sum(len(queue) for queue in self._waiting.values())

    async def acquire(self, run_id: str, *, again: bool = False) -> Slot:
        """Wait for this run's turn; who was refused and tries `again` is next. Raises `PausedTooLong` when it is far off."""
        while True:
            slot = await self._acquire(run_id, again=again)
            if self.pause_left_s() <= 0:
                return slot
            again = True
            self.release_unused(slot)  # the pause began between its turn and its waking up

    async def _acquire(self, run_id: str, *, again: bool) -> Slot:
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
        now = self._clock.monotonic()
        held = self._waiting or self._pace.may_send(now) > 0 or self._next_at > now or self.pause_left_s() > 0
        if held or self.in_flight >= self._places.now(now):
            return None
        return self._take(run_id)

    def received(self, slot: Slot, pause_s: float | None = None) -> None:
        """The provider took the call and is working on it. `pause_s`: it said that its limit is used up for so long."""
        self._pause(pause_s, "its rate limit is used up")
        if not slot.received:
            self._note_received(slot)
            self._grant()

    def release_unused(self, slot: Slot) -> None:
        """The call was not made after all."""
        self._pace.unsent(slot.sent)
        self._give_back(slot)

    def release_well(self, slot: Slot) -> None:
        """The call was answered."""
        if not slot.received:
            self._note_received(slot)
        self._give_back(slot)

    def release_crowded(self, slot: Slot, pause_s: float | None, reason: str) -> None:
        """The provider said "too many" or "overloaded"."""
        now = self._clock.monotonic()
        took_s = 2 * (now - slot.sent.began) + 0.5
        self._word_s = max(self._word_s + 0.2 * (took_s - self._word_s), took_s, SHORTEST_WORD_S)
        self._word_s = min(self._word_s, LONGEST_WORD_S)
        counted = self._places.counted
        if slot.sent.began >= self._reacted_at:  # once for all that were out together
            self._reacted_at = now
            counted = self._places.refused(slot.ahead, now, pause_s or 0.0, paced=self._pace.per_s is not None)
        if counted:
            self._pace.lift()
        else:
            self._pace.refused(slot.sent, now, self._word_s)
        for other in reversed(self._out.values()):
            if other.sent.number <= slot.sent.number:
                break
            other.ahead -= 1
        self._pause(pause_s, reason)
        self._give_back(slot)

    def release(self, slot: Slot) -> None:
        """The call failed in a way that says nothing about the rate."""
        self._pace.over(slot.sent, self._clock.monotonic())
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
        now = self._clock.monotonic()
        counted = self._places.counted
        self._places.taken(slot.ahead + 1, now, wanted=slot.last_one or slot.sent.others_wait)
        if counted and not self._places.counted:
            self._pace.resume()
        self._pace.taken(slot.sent, now)

    def _give_back(self, slot: Slot) -> None:
        self._out.pop(id(slot), None)
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
        self._notice_received()
        while self._waiting:
            now = self._clock.monotonic()
            held = max(self.pause_left_s(), self._next_at - now, self._pace.may_send(now))
            if held <= 0 and self.in_flight >= self._places.now(now):
                probe_in = self._places.probe_in(now)
                held = float("inf") if probe_in is None else max(probe_in, 0.001)
            if held > 0:
                if self._out:
                    oldest = next(iter(self._out.values()))
                    held = min(held, oldest.sent.began + self._word_s - now)
                if held < float("inf"):
                    self._wake_in(held)
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
            if slot.sent.began > heard:
                return
            self._note_received(slot)

    def _take(self, run_id: str) -> Slot:
        now = self._clock.monotonic()
        if self._pace.per_s is not None:
            gap_s = 1 / self._pace.per_s
            self._next_at = max(self._next_at, now - min(gap_s, LATE_S)) + gap_s
        sent = Sent(self._sent, now, bool(self._waiting))
        last_one = self.in_flight + 1 >= self._places.now(now)
        slot = Slot(run_id, sent, self.in_flight, last_one)
        self._sent += 1
        self.in_flight += 1
        self._pace.sent(sent)
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
