"""What a provider takes, found out by trying: how fast calls may follow each other, and how many it takes at once. Pure: the
moment is an argument.

**Rate.** A provider refuses because its allowance is used up; so between two refusals it took as many calls as its rate
allows, less what went unused while it was left alone. Every refusal makes the estimate better, and the longer the time
between two, the better. After a refusal one call asks whether there is room again; then calls go on a little below the
rate, stay near it, and only after a while go beyond it to see whether it has grown. The while is long enough that
refusals and what they cost are one part in twenty. Why not something simpler: docs/decisions/0054.

**Concurrency.** A provider that counts calls under way refuses at the same number each time and never takes more. After
it has done so twice, that number is held, without a rate, and one more is tried now and then. A provider that refuses at
other numbers counts something else.
"""

from __future__ import annotations

import math
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace

DIP = 0.06
"""So far below the rate calls go on after a refusal."""
COST_SHARE = 20.0
"""A refusal should come once in so many calls, and once in so many times as long as it holds calls back."""
SHORTEST_ROUND_S = 5.0
LONG_ROUND = 2.5
"""A provider that refuses nothing for so many times as long as it should has a much higher rate now."""
TELLING = 10
"""Calls between two refusals from which the rate is known."""
SLOWEST, FIRST = 0.05, 1.0
"""Calls per second that are tried whatever the provider says, and that are tried at first."""
SEEN_S = 5.0
"""The first pace is what a provider took in so many seconds."""
REMEMBERED = 200
ALIKE = 0.15
"""Two refusals at paces as near as this are at the provider's."""
FIRST_PROBE_S, LAST_PROBE_S = (0.05, 2.0), 5.0
"""After a refusal that names no time, a call asks again after so long, and then less and less often."""


@dataclass(frozen=True)
class Sent:
    """A call on its way: its number, since when, and whether others waited for its place."""

    number: int
    began: float
    others_wait: bool


class CallRate:
    """`per_s` is None while nothing holds calls back."""

    def __init__(self) -> None:
        self.per_s: float | None = None
        self.closed = False  #: the provider refused, and one call at a time asks whether it still does
        self.probe_at = 0.0
        self._probe: int | None = None
        self._probe_after_s = 0.0
        self._sends: deque[Sent] = deque(maxlen=REMEMBERED)
        self._refused: Sent | None = None
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
        """Seconds until the next call may go while the provider is closed; for ever while one is asking."""
        if not self.closed:
            return 0.0
        return float("inf") if self._probe is not None else max(self.probe_at - now, 0.0)

    def sent(self, call: Sent) -> None:
        if self._refused is None:
            self._refused = Sent(call.number - 1, call.began, False)
        self._sends.append(call)
        if self.closed:
            self._probe = call.number

    def unsent(self, call: Sent) -> None:
        """It was not made after all."""
        self._forget(call)
        if self._probe == call.number:
            self._probe = None
        if self._refused is not None and call.number > self._refused.number:
            self._refused = replace(self._refused, number=self._refused.number + 1)

    def accepted(self, call: Sent, now: float) -> None:
        """The provider took the call."""
        if self.per_s is None:
            return
        if self.closed:
            if call.began >= self._reacted_at:
                self._open(now)
            return
        if call.others_wait and call.began >= self._opened_at:
            self._grow()

    def over(self, call: Sent, now: float) -> None:
        """The call ended in a way that says nothing about the rate."""
        if self._probe == call.number:
            self._probe, self.probe_at = None, now

    def refused(self, call: Sent, now: float, refusal_latency_s: float) -> None:
        """`refusal_latency_s`: how long it takes to hear of a refusal."""
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
            return  # it was sent before the last one was heard of
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
        if not self.closed:  # asking one at a time would take longer than it saves
            self._opened_at = now

    def lift(self) -> None:
        """Nothing holds calls back any more."""
        self.per_s, self.closed, self._probe = None, False, None

    def resume(self) -> None:
        """What was lifted holds again."""
        if self._rate:
            self.per_s = self._rate * (1 - DIP)

    def _learn(self, call: Sent, took: int, span_s: float) -> None:
        assert self.per_s is not None
        least = took / span_s if span_s > 0 else 0.0
        refused_at, self._refused_at = self._refused_at, self.per_s
        if took >= TELLING and call.began - self._opened_at >= 4 * self._closed_s:
            self._rate = min(max(self._lately(call), least), self.per_s)
            self._finding = False
        elif self._refusal_latency_s >= LAST_PROBE_S:  # many more were sent before it was heard of
            self._rate = max(min(1.1 * self._lately(call), 0.95 * self.per_s), least)
            self._finding = False
        elif refused_at is not None and abs(self.per_s / refused_at - 1) < ALIKE:
            self._rate = max(0.95 * min(self.per_s, refused_at), least)
            self._finding = False
        else:  # it may be far off: what a provider saves up hides its rate
            self._rate = max(math.sqrt(max(least, self.per_s / 16) * self.per_s), least)
            self._finding = True

    def _lately(self, call: Sent, since: float = float("-inf")) -> float:
        """Calls per second that were taken before this one."""
        taken = [sent.began for sent in self._sends if sent.number < call.number and sent.began >= since]
        if since == float("-inf"):
            taken = taken[-2 * TELLING :]
        return len(taken) / max(call.began - taken[0], 1.0) if taken else 0.0

    def _forget(self, call: Sent) -> None:
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
"""Refusals at the same number, one after the other, that make it the provider's; more where chance hits often."""
FEW = 4
PROBE_CALLS = 20.0
"""One more is tried once in so many calls, and once in so many times as long as a refusal holds calls back."""
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
        """The provider counts those under way."""
        few = self._refused_at is not None and self._refused_at < FEW
        return self._sure >= (SURE_OF_FEW if few else SURE)

    def now(self, now: float) -> int:
        """How many may be under way."""
        if self.counted and self._refused_at is not None and now >= self._probe_at:
            return min(max(int(self.limit), self._refused_at) + 1, int(self._ceiling))
        return int(self.limit)

    def probe_in(self, now: float) -> float | None:
        """Seconds until one more is tried."""
        return self._probe_at - now if self.counted and now < self._probe_at else None

    def taken(self, level: int, now: float, *, wanted: bool) -> None:
        """The provider has taken a call and has `level` now; `wanted`: there is use for more places."""
        if self._taken_at is not None:
            self._between_s += 0.1 * (min(now - self._taken_at, LONGEST_PROBE_S) - self._between_s)
        self._taken_at = now
        self._took = True
        self._most = max(self._most, level)
        if not self.counted:
            if wanted:
                self.limit = min(self.limit + 1, self._ceiling)
        elif self._refused_at is not None and level > self._refused_at:
            self._sure -= 1  # it takes more than that
            self._refused_at = level
            self.limit = min(max(self.limit, level) + 1, self._ceiling)

    def refused(self, level: int, now: float, pause_s: float, *, paced: bool) -> bool:
        """It refused a call when it had `level`; `paced`: a pace holds calls back already. Whether those under way are what
        it counts."""
        same = self._same(level)
        if not same:
            self._sure = 0
        elif self._took:  # else nothing has changed since the last one
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
        """It refuses at the number at which it refused before, and took no more meanwhile."""
        if self._refused_at is None or level == 0:
            return False
        near = 1 if self._refused_at >= 2 * FEW else 0  # a call may end at the same moment
        return abs(level - self._refused_at) <= near and self._most <= self._refused_at + near
