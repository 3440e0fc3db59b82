"""An independent calculator: it walks over every minute of two years and asks what the clock on the wall shows.

It shares nothing with the product: the fields are understood by a few lines of its own, local time comes from the zone's
list of minutes, and clock changes are what it sees when two neighbouring minutes are not one minute apart.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


def field(text: str, low: int, high: int, names: list[str] | None = None) -> set[int]:
    def number(word: str) -> int:
        if names and word.upper() in names:
            return names.index(word.upper()) + (1 if len(names) == 12 else 0)
        return int(word)

    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        if span == "*":
            first, last = low, high
        elif "-" in span:
            first, last = (number(word) for word in span.split("-"))
        else:
            first = number(span)
            last = high if step else first
        found.update(range(first, last + 1, int(step or 1)))
    return found


def lookup(values: set[int], size: int) -> np.ndarray:
    table = np.zeros(size, dtype=bool)
    table[list(values)] = True
    return table


class MinuteTable:
    """Every minute of a zone from `start`, and the local fields it shows."""

    def __init__(self, zone: str, start: datetime, days: int) -> None:
        self.start = start
        utc = np.arange(days * 1440, dtype=np.int64) + int(start.timestamp()) // 60
        offsets = np.zeros(len(utc), dtype=np.int64)
        where = ZoneInfo(zone)

        def offset_at(minute: int) -> int:
            offset = (start + timedelta(minutes=minute)).astimezone(where).utcoffset()
            assert offset is not None
            return int(offset.total_seconds()) // 60

        for first in range(0, days * 1440, 1440):
            if offset_at(first) == offset_at(first + 1440):
                offsets[first : first + 1440] = offset_at(first)
            else:
                offsets[first : first + 1440] = [offset_at(first + minute) for minute in range(1440)]
        self.local = utc + offsets
        self._split()
        steps = np.diff(self.local)
        self.gaps = np.flatnonzero(steps > 1) + 1
        """Indexes of the first minute after a gap."""
        furthest = np.maximum.accumulate(self.local)
        self.second_time = np.concatenate([[False], self.local[1:] <= furthest[:-1]])

    def _split(self) -> None:
        self.minute, self.hour, self.day, self.month, self.weekday = split(self.local)

    def fires(self, expression: str) -> list[datetime]:
        parts = expression.split()
        matches = matcher(parts)
        hit = matches(self.minute, self.hour, self.day, self.month, self.weekday)
        if not parts[1].startswith("*"):
            hit &= ~self.second_time
            for index in self.gaps:
                skipped = np.arange(self.local[index - 1] + 1, self.local[index])
                if matches(*split(skipped)).any():
                    hit[index] = True
        return [self.start + timedelta(minutes=int(index)) for index in np.flatnonzero(hit)]


def split(local: np.ndarray) -> tuple[np.ndarray, ...]:
    stamps = local.astype("datetime64[m]")
    days = stamps.astype("datetime64[D]")
    months = stamps.astype("datetime64[M]")
    return (
        local % 60,
        local // 60 % 24,
        (days - months).astype(int) + 1,
        months.astype(int) % 12 + 1,
        (days.astype(int) + 4) % 7,
    )


def matcher(parts: list[str]):  # type: ignore[no-untyped-def]
    minutes, hours = lookup(field(parts[0], 0, 59), 60), lookup(field(parts[1], 0, 23), 24)
    days, months = lookup(field(parts[2], 1, 31), 32), lookup(field(parts[3], 1, 12, MONTHS), 13)
    weekdays = lookup({value % 7 for value in field(parts[4], 0, 7, DAYS)}, 7)
    both = parts[2].startswith("*") or parts[4].startswith("*")

    def matches(minute, hour, day, month, weekday):  # type: ignore[no-untyped-def]
        dates = days[day] & weekdays[weekday] if both else days[day] | weekdays[weekday]
        return minutes[minute] & hours[hour] & months[month] & dates

    return matches


START = datetime(2025, 1, 1, tzinfo=UTC)
