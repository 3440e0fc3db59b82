"""Learns by trial what a provider takes: how fast calls may follow each other, and how many at once. Pure: time is an
argument.

**Rate.** A provider refuses when its allowance is used up, so between two refusals it took as many calls as its rate allows,
less what went unused while no calls were sent. Every refusal improves the estimate, the more so the longer the time between
two. After a refusal, one call at a time probes for room; then calls continue a little below the rate, stay near it, and only
after a while exceed it to see whether it has grown. That while is long enough for refusals and their cost to stay at one
part in twenty. Why not something simpler: docs/decisions/0054.

**Concurrency.** A provider that counts calls in flight refuses at the same number each time and never takes more. After two
such refusals that number becomes the limit, without a rate, and one more call is tried now and then. A provider that refuses
at varying numbers counts something else.
"""

from __future__ import annotations

import math
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace

DIP = 0.06
"""How far below the estimated rate calls continue after a refusal."""
COST_SHARE = 20.0
"""The aim is at most one refusal in this many calls, and in this many times the delay that a refusal causes."""
SHORTEST_ROUND_S = 5.0
LONG_ROUND = 2.5
"""After this many times the expected time without a refusal, assume a much higher rate."""
TELLING = 10
"""How many calls between two refusals are enough to know the rate."""
SLOWEST, FIRST = 0.05, 1.0
"""Calls per second: the minimum that is always tried, and the minimum of the first estimate."""
SEEN_S = 5.0
"""The first estimate is what the provider took in this many seconds."""
REMEMBERED = 200
ALIKE = 0.15
"""Two refusals at rates that differ by less than this are both near the provider's rate."""
FIRST_PROBE_S, LAST_PROBE_S = (0.05, 2.0), 5.0
"""Bounds of the first delay before a probe, if the refusal names no time, and the longest delay: it grows with each
probe."""


@dataclass(frozen=True)
class SentCall:
    """A sent call: its number, when it was sent, and whether other calls were waiting."""

    number: int
    began: float
    others_wait: bool


class CallRate:
    """The estimated rate; `per_s` is None while the rate is not limited."""

    def __init__(self) -> None:
        self.per_s: float | None = None
        self.closed = False  #: the provider refused; calls go one at a time, as probes, until one is accepted
        self.probe_at = 0.0
        self._probe: int | None = None
        self._probe_after_s = 0.0
        self._sends: deque[SentCall] = deque(maxlen=REMEMBERED)
        self._refused: SentCall | None = None
        self._reacted_at = float("-inf")
        self._opened_at = 0.0
        self._closed_s = 0.0
        self._cost_s = 0.0
        self._rate = 0.0
        self._round_s = 0.0
        self._finding = False
        self._refused_at: float | None = None
        self._refusal_latency_s = 0.0

    def closed_for_s(self, now: float) -> float:
        """Seconds until the next probe may go while the provider is closed; infinite while a probe is out."""
        if not self.closed:
            return 0.0
        return float("inf") if self._probe is not None else max(self.probe_at - now, 0.0)

    def sent(self, call: SentCall) -> None:
        if self._refused is None:
            self._refused = SentCall(call.number - 1, call.began, False)
        self._sends.append(call)
        if self.closed:
            self._probe = call.number

    def unsent(self, call: SentCall) -> None:
        """The call was not sent after all."""
        self._forget(call)
        if self._probe == call.number:
            self._probe = None
        if self._refused is not None and call.number > self._refused.number:
            self._refused = replace(self._refused, number=self._refused.number + 1)

    def accepted(self, call: SentCall, now: float) -> None:
        if self.per_s is None:
            return
        if self.closed:
            if call.began >= self._reacted_at:
                self._open(now)
            return
        if call.others_wait and call.began >= self._opened_at:
            self._grow()

    def over(self, call: SentCall, now: float) -> None:
        """The call ended in a way that says nothing about the rate."""
        if self._probe == call.number:
            self._probe, self.probe_at = None, now

    def refused(self, call: SentCall, now: float, refusal_latency_s: float) -> None:
        """`refusal_latency_s`: how long it takes to learn of a refusal."""
        before = self._refused or call
        self._forget(call)
        if call.number > before.number:
            self._refused = call
        if self.closed:
            if self._probe == call.number:
                self._probe = None
                self._probe_after_s = min(1.5 * self._probe_after_s, LAST_PROBE_S)
                self.probe_at = now + self._probe_after_s
            return
        if call.began < self._reacted_at:
            return  # sent before the last refusal was known
        self._reacted_at = now
        self._refusal_latency_s = refusal_latency_s
        took, span_s = call.number - before.number - 1, call.began - before.began
        if self.per_s is None and self._rate:
            self.resume()
        elif self.per_s is None:
            self._rate = max(self._lately(call, since=call.began - SEEN_S), took / max(span_s, SEEN_S), FIRST)
            self.per_s, self._finding = self._rate, True
        else:
            self._learn(call, took, span_s)
            self.per_s = max(self._rate * (1 - DIP), SLOWEST)
        assert self.per_s is not None
        self._round_s = 0.0
        self._probe_after_s = min(max(1 / self.per_s, FIRST_PROBE_S[0]), FIRST_PROBE_S[1])
        self.probe_at, self._probe = now + self._probe_after_s, None
        self.closed = refusal_latency_s < LAST_PROBE_S
        if not self.closed:  # probing one at a time would cost more time than it saves
            self._opened_at = now

    def lift(self) -> None:
        """Stop limiting the rate."""
        self.per_s, self.closed, self._probe = None, False, None

    def resume(self) -> None:
        """Limit the rate again, to the last estimate."""
        if self._rate:
            self.per_s = self._rate * (1 - DIP)

    def _learn(self, call: SentCall, took: int, span_s: float) -> None:
        assert self.per_s is not None
        least = took / span_s if span_s > 0 else 0.0
        refused_at, self._refused_at = self._refused_at, self.per_s
        if took >= TELLING and call.began - self._opened_at >= 4 * self._closed_s:
            self._rate = min(max(self._lately(call), least), self.per_s)
            self._finding = False
        elif self._refusal_latency_s >= LAST_PROBE_S:  # many more calls were sent before the refusal was known
            self._rate = max(min(1.1 * self._lately(call), 0.95 * self.per_s), least)
            self._finding = False
        elif refused_at is not None and abs(self.per_s / refused_at - 1) < ALIKE:
            self._rate = max(0.95 * min(self.per_s, refused_at), least)
            self._finding = False
        else:  # the estimate may be far off: a burst allowance hides the rate
            self._rate = max(math.sqrt(max(least, self.per_s / 16) * self.per_s), least)
            self._finding = True

    def _lately(self, call: SentCall, since: float = float("-inf")) -> float:
        """Accepted calls per second before this one."""
        starts = [sent.began for sent in self._sends if sent.number < call.number and sent.began >= since]
        if since == float("-inf"):
            starts = starts[-2 * TELLING :]
        return len(starts) / max(call.began - starts[0], 1.0) if starts else 0.0

    def _forget(self, call: SentCall) -> None:
        with suppress(ValueError):
            self._sends.remove(call)

    def _open(self, now: float) -> None:
        self.closed, self._probe = False, None
        self._closed_s = now - self._reacted_at
        self._cost_s += 0.3 * (self._closed_s - self._cost_s)
        self._opened_at = now
        self._round_s = 0.0

    def _grow(self) -> None:
        assert self.per_s is not None
        gap_s = 1 / self.per_s
        if self._finding:
            self.per_s *= min(2 ** (gap_s / max(2.0, self._cost_s, self._refusal_latency_s / 2)), 1.25)
            return
        self._round_s += gap_s
        whole_s = max(COST_SHARE * gap_s, COST_SHARE * self._cost_s, 2 * self._refusal_latency_s, SHORTEST_ROUND_S)
        self.per_s = self._rate * (1 + DIP * (self._round_s / whole_s - 1) ** 3)
        self._finding = self._round_s > LONG_ROUND * whole_s


SURE, SURE_OF_FEW = 2, 4
"""Consecutive refusals at the same number that prove a concurrency limit; more for small numbers, where chance hits
often."""
FEW = 4
PROBE_CALLS = 20.0
"""One more call is tried once in this many calls, and once in this many times the pause after a refusal."""
LONGEST_PROBE_S, FREE_PROBE_S = 60.0, 20.0


class ConcurrencyLimit:
    def __init__(self, initial: float, ceiling: float) -> None:
        self.limit = initial
        self._ceiling = ceiling
        self._sure = 0
        self._refused_at: int | None = None
        self._most = 0
        self._took = False
        self._probe_at = 0.0
        self._taken_at: float | None = None
        self._between_s = 1.0

    @property
    def counted(self) -> bool:
        """Whether the provider limits the calls in flight."""
        few = self._refused_at is not None and self._refused_at < FEW
        return self._sure >= (SURE_OF_FEW if few else SURE)

    def now(self, now: float) -> int:
        """How many calls may be in flight."""
        if self.counted and self._refused_at is not None and now >= self._probe_at:
            return min(max(int(self.limit), self._refused_at) + 1, int(self._ceiling))
        return int(self.limit)

    def probe_in(self, now: float) -> float | None:
        """Seconds until one more call is tried; None if none is due."""
        return self._probe_at - now if self.counted and now < self._probe_at else None

    def taken(self, level: int, now: float, *, waiting: bool) -> None:
        """The provider accepted a call and now has `level`; `waiting`: more calls could be sent."""
        if self._taken_at is not None:
            self._between_s += 0.1 * (min(now - self._taken_at, LONGEST_PROBE_S) - self._between_s)
        self._taken_at = now
        self._took = True
        self._most = max(self._most, level)
        if not self.counted:
            if waiting:
                self.limit = min(self.limit + 1, self._ceiling)
        elif self._refused_at is not None and level > self._refused_at:
            self._sure -= 1  # the provider takes more than that
            self._refused_at = level
            self.limit = min(max(self.limit, level) + 1, self._ceiling)

    def refused(self, level: int, now: float, pause_s: float, *, paced: bool) -> bool:
        """The provider refused a call when it had `level`; `paced`: the rate is limited already. Returns whether the
        provider limits the calls in flight."""
        same = self._same(level)
        if not same:
            self._sure = 0
        elif self._took:  # otherwise nothing has changed since the last refusal
            self._sure = min(self._sure + 1, SURE_OF_FEW)
        self._took = False
        if not same or self._refused_at is None:
            self._refused_at = level
        self._most = level
        if self.counted:
            self.limit = max(float(level), 1.0)
            longest_s = LONGEST_PROBE_S if pause_s else FREE_PROBE_S
            self._probe_at = now + min(PROBE_CALLS * max(self._between_s, pause_s), longest_s)
        elif not paced:
            self.limit = max(self.limit / 2, level + 1.0)
        return self.counted

    def _same(self, level: int) -> bool:
        """Whether it refuses at the same number as before, and took no more in between."""
        if self._refused_at is None or level == 0:
            return False
        near = 1 if self._refused_at >= 2 * FEW else 0  # a call may end at the same moment
        return abs(level - self._refused_at) <= near and self._most <= self._refused_at + near
