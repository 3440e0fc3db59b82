"""Notices when somebody sets the time of day, and moves what was stored before along with it.

Deadlines and leases are stored as times of day, because they outlive the process. What they mean is elapsed time, which
only the monotonic clock tells. When the two clocks drift apart between two looks, the difference is a step of the time of
day: by a person, by a time server, or by a machine that slept.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from orchestrator.system.clock import Clock

TOLERANCE = timedelta(seconds=5)
"""Less than that is drift, which harms nothing."""


@dataclass(frozen=True)
class ClockStep:
    """The time of day moved by `by` at some moment between the last look and `now`, which is new time."""

    by: timedelta
    now: datetime
    elapsed: timedelta
    """Since the look before, by the monotonic clock."""

    @property
    def old_until(self) -> datetime:
        """What the old clock would show now."""
        return self.now - self.by

    def moved(self, moment: datetime | None) -> datetime | None:
        """A stored moment as the new clock would have told it; one that was stored after the step stays."""
        if moment is None or self._is_new(moment):
            return moment
        return moment + self.by

    def _is_new(self, moment: datetime) -> bool:
        return moment > self.old_until or self.now - self.elapsed < moment <= self.now


class ClockSteps:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen = clock.now(), clock.monotonic()

    def look(self) -> ClockStep | None:
        """The step since the look before, if there was one."""
        now, seconds = self._clock.now(), self._clock.monotonic()
        before, seconds_before = self._seen
        self._seen = now, seconds
        elapsed = timedelta(seconds=seconds - seconds_before)
        by = now - before - elapsed
        return ClockStep(by, now, elapsed) if abs(by) > TOLERANCE else None
