"""How many calls a provider takes at once, found out by trying. Pure: the moment is an argument.

Some providers count calls per minute, some count those under way, and a refusal does not say which. One that counts those
under way refuses at the same number each time, and never takes more; after it has done so twice that number is held to, and
one more is tried now and then. A provider that refuses at other numbers counts something else.
"""

from __future__ import annotations

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
