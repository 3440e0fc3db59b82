"""A clock that moves only when a test says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)


class ManualClock:
    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._seconds = 1000.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._seconds

    def set(self, moment: datetime) -> None:
        """Another time of day, a while later."""
        self._now = moment
        self._seconds += 3600

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._seconds += seconds

    def step(self, by: timedelta) -> None:
        """Somebody sets the time of day; no time passes."""
        self._now += by
