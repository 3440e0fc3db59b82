"""How many calls may be at one (provider, model) at once, and how fast they may follow each other.

`acquire` a permit, then report whether the provider `accepted` or `refused` the call. Acceptance is known long before the
answer, and a refusal comes at once. A pause that the provider asks for holds back all calls. Runs take turns so that none
starves, and a refused call goes next. The limiter sees only counts and times, never what is sent.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from orchestrator.gateway.pacing.provider_limits import CallRate, ConcurrencyLimit, SentCall
from orchestrator.system.clock import Clock

SHORTEST_LATENCY_S, LONGEST_LATENCY_S = 1.0, 60.0
"""The refusal window is about twice the time refusals take, within these bounds: some servers send nothing before the
answer."""
LATE_S = 0.05
"""How much of our own delay is made up for; more would cause a burst."""
LONGEST_PAUSE_S = 3600.0
"""The longest pause that is honoured, whatever the provider asks for."""


class PausedTooLong(Exception):
    """The provider asks for a pause longer than a call may wait."""

    def __init__(self, reason: str, left_s: float) -> None:
        super().__init__(reason)
        self.reason = reason
        self.left_s = left_s


@dataclass
class Permit:
    """The right to have one call at the provider. Report `accepted` or `refused`, and finally `release` it."""

    limiter: Limiter
    run_id: str
    sent: SentCall
    ahead: int  #: calls at the provider when this one arrived, without those refused since
    last_one: bool  #: it took the last free place
    is_accepted: bool = False
    is_over: bool = False

    def accepted(self, pause_s: float | None = None) -> None:
        """The provider accepted the call and is working on it. `pause_s`: it reported its limit as used up for that long."""
        self.limiter.accepted(self, pause_s)

    def refused(self, pause_s: float | None, reason: str) -> None:
        """The provider answered "too many" or "overloaded"; this ends the permit."""
        self.limiter.refused(self, pause_s, reason)

    def release(self, *, unused: bool = False) -> None:
        """The call has ended, or was not made after all (`unused`)."""
        self.limiter.release(self, unused=unused)


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
        self.at_provider = 0
        self.paused_until = 0.0
        self.pause_reason = ""
        self._rate = CallRate()
        self._concurrency = ConcurrencyLimit(initial, ceiling)
        self._too_long_s = too_long_s
        self._clock = clock
        self._sleep = sleep
        self._unheard: OrderedDict[int, Permit] = OrderedDict()
        """Calls without any response yet, oldest first."""
        self._sent = 0
        self._reacted_at = float("-inf")
        self._next_at = 0.0
        self._refusal_latency_s = SHORTEST_LATENCY_S
        self._waiting: OrderedDict[str, deque[asyncio.Future[Permit]]] = OrderedDict()
        self._waker: asyncio.Task[None] | None = None
        self._wakes_at = float("inf")

    @property
    def limit(self) -> float:
        """How many calls may be at the provider at once."""
        return self._concurrency.limit

    @property
    def per_s(self) -> float | None:
        """Calls per second; None while the rate is not limited."""
        return self._rate.per_s

    @property
    def queued(self) -> int:
        return sum(len(queue) for queue in self._waiting.values())

    async def acquire(self, run_id: str, *, again: bool = False) -> Permit:
        """Wait for this run's turn; a refused call that tries `again` goes next. Raises `PausedTooLong`."""
        while True:
            permit = await self._acquire(run_id, again=again)
            if self.pause_left_s() <= 0:
                return permit
            again = True
            self.release(permit, unused=True)  # a pause began between the grant and this task waking up

    async def _acquire(self, run_id: str, *, again: bool) -> Permit:
        if self.pause_left_s() > self._too_long_s:
            raise PausedTooLong(self.pause_reason, self.pause_left_s())
        future: asyncio.Future[Permit] = asyncio.get_running_loop().create_future()
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
                self.release(future.result(), unused=True)
            raise

    def try_acquire(self, run_id: str) -> Permit | None:
        """A permit if one is free now: nobody is waiting, and no rate or pause holds calls back. Otherwise None."""
        now = self._clock.monotonic()
        blocked = self._waiting or self._rate.closed_for_s(now) > 0 or self._next_at > now or self.pause_left_s() > 0
        if blocked or self.at_provider >= self._concurrency.now(now):
            return None
        return self._take(run_id)

    def accepted(self, permit: Permit, pause_s: float | None = None) -> None:
        self._pause(pause_s, "its rate limit is used up")
        if not permit.is_accepted:
            self._note_accepted(permit)
            self._grant()

    def refused(self, permit: Permit, pause_s: float | None, reason: str) -> None:
        now = self._clock.monotonic()
        took_s = 2 * (now - permit.sent.began) + 0.5
        latency_s = max(self._refusal_latency_s + 0.2 * (took_s - self._refusal_latency_s), took_s, SHORTEST_LATENCY_S)
        self._refusal_latency_s = min(latency_s, LONGEST_LATENCY_S)
        counted = self._concurrency.counted
        if permit.sent.began >= self._reacted_at:  # react once to all calls that were out together
            self._reacted_at = now
            paced = self._rate.per_s is not None
            counted = self._concurrency.refused(permit.ahead, now, pause_s or 0.0, paced=paced)
        if counted:
            self._rate.lift()
        else:
            self._rate.refused(permit.sent, now, self._refusal_latency_s)
        for other in reversed(self._unheard.values()):
            if other.sent.number <= permit.sent.number:
                break
            other.ahead -= 1
        self._pause(pause_s, reason)
        self._give_back(permit)

    def release(self, permit: Permit, *, unused: bool = False) -> None:
        if permit.is_over:
            return
        if unused:
            self._rate.unsent(permit.sent)
        else:
            self._rate.over(permit.sent, self._clock.monotonic())
        self._give_back(permit)

    def allowance(self) -> str:
        """What the provider currently takes, for people."""
        per_s = self._rate.per_s
        return f"{int(self.limit)} calls at once" + ("" if per_s is None else f", {per_s * 60:.0f} a minute")

    def pause_left_s(self) -> float:
        return max(self.paused_until - self._clock.monotonic(), 0.0)

    async def close(self) -> None:
        if self._waker is not None:
            self._waker.cancel()
            await asyncio.gather(self._waker, return_exceptions=True)

    def _note_accepted(self, permit: Permit) -> None:
        permit.is_accepted = True
        self._unheard.pop(id(permit), None)
        now = self._clock.monotonic()
        counted = self._concurrency.counted
        self._concurrency.taken(permit.ahead + 1, now, waiting=permit.last_one or permit.sent.others_wait)
        if counted and not self._concurrency.counted:
            self._rate.resume()
        self._rate.accepted(permit.sent, now)

    def _give_back(self, permit: Permit) -> None:
        permit.is_over = True
        self._unheard.pop(id(permit), None)
        self.at_provider -= 1
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
        self._assume_accepted()
        while self._waiting:
            now = self._clock.monotonic()
            wait_s = max(self.pause_left_s(), self._next_at - now, self._rate.closed_for_s(now))
            if wait_s <= 0 and self.at_provider >= self._concurrency.now(now):
                probe_in = self._concurrency.probe_in(now)
                wait_s = float("inf") if probe_in is None else max(probe_in, 0.001)
            if wait_s > 0:
                if self._unheard:
                    oldest = next(iter(self._unheard.values()))
                    wait_s = min(wait_s, oldest.sent.began + self._refusal_latency_s - now)
                if wait_s < float("inf"):
                    self._wake_in(wait_s)
                return
            run_id, queue = self._waiting.popitem(last=False)
            future = queue.popleft()
            if queue:
                self._waiting[run_id] = queue
            if future.done():
                continue
            future.set_result(self._take(run_id))

    def _assume_accepted(self) -> None:
        """Silence past the refusal window counts as acceptance."""
        sent_before = self._clock.monotonic() - self._refusal_latency_s
        while self._unheard:
            permit = next(iter(self._unheard.values()))
            if permit.sent.began > sent_before:
                return
            self._note_accepted(permit)

    def _take(self, run_id: str) -> Permit:
        now = self._clock.monotonic()
        if self._rate.per_s is not None:
            gap_s = 1 / self._rate.per_s
            self._next_at = max(self._next_at, now - min(gap_s, LATE_S)) + gap_s
        sent = SentCall(self._sent, now, bool(self._waiting))
        last_one = self.at_provider + 1 >= self._concurrency.now(now)
        permit = Permit(self, run_id, sent, self.at_provider, last_one)
        self._sent += 1
        self.at_provider += 1
        self._rate.sent(sent)
        self._unheard[id(permit)] = permit
        return permit

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
