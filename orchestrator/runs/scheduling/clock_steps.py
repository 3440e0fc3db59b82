"""Detects changes of the system time and adjusts the times that were stored before.

Deadlines and leases are stored as wall-clock times, because they outlive the process, but they mean elapsed time, which only
the monotonic clock measures. If the two clocks diverge between two checks, the difference is a step of the wall clock, made
by a person, a time server, or a machine that slept.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from orchestrator.system.clock import Clock

TOLERANCE = timedelta(seconds=5)
"""Smaller differences are drift, which is harmless."""


@dataclass(frozen=True)
class ClockStep:
    """The wall clock moved by `by` at some moment between the previous check and `now`, which is on the new clock."""

    by: timedelta
    now: datetime
    elapsed: timedelta
    """Time since the previous check, by the monotonic clock."""

    @property
    def old_until(self) -> datetime:
        """What the old clock would show now."""
        return self.now - self.by

    def moved(self, moment: datetime | None) -> datetime | None:
        """A stored time converted to the new clock; one that was stored after the step stays as it is."""
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
        """The step since the previous check, if there was one."""
        now, seconds = self._clock.now(), self._clock.monotonic()
        before, seconds_before = self._seen
        self._seen = now, seconds
        elapsed = timedelta(seconds=seconds - seconds_before)
        by = now - before - elapsed
        return ClockStep(by, now, elapsed) if abs(by) > TOLERANCE else None
