"""The instants at which a cron expression fires in a time zone. Pure; instants are timezone-aware and in UTC.

There are two kinds of expression, as in Debian's cron. One that names its hours means wall-clock times: a time that the
clock skips fires once, at the first instant after the gap, and a time that occurs twice fires the first time. One whose hour
field starts with `*` means an interval in real time: it fires whenever the wall clock matches, so hourly stays hourly.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from orchestrator.errors import Invalid
from orchestrator.schedules.firing.cron import Cron

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)


def zone(name: str) -> tzinfo:
    """The time zone of a name such as `Europe/Berlin`."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # unknown, malformed, or a directory
        raise Invalid(f"there is no time zone {name!r}; use a name such as UTC, Europe/Berlin or America/New_York") from None


def instants(cron: Cron, where: tzinfo, after: datetime) -> Iterator[datetime]:
    """Every instant later than `after` at which the expression fires, in order, without end."""
    after = after.astimezone(UTC).replace(microsecond=0)
    if where is UTC:
        for local in cron.local_times(_local(after, where)):
            yield local.replace(tzinfo=UTC)
    elif cron.by_the_hour:
        yield from _in_real_time(cron, where, after)
    else:
        yield from _on_the_wall(cron, where, after)


def next_instant(cron: Cron, where: tzinfo, after: datetime) -> datetime:
    for instant in instants(cron, where, after):
        return instant
    raise Invalid(f"{cron.written!r} does not fire within 50 years; check day and month")


def first_instants(cron: Cron, where: tzinfo, after: datetime, count: int) -> list[datetime]:
    return list(islice(instants(cron, where, after), count))


def _on_the_wall(cron: Cron, where: tzinfo, after: datetime) -> Iterator[datetime]:
    last = after
    for local in cron.local_times(_local(after, where)):
        instant = local.replace(tzinfo=where, fold=0).astimezone(UTC)
        if _local(instant, where) != local:  # the clock skips this time
            instant = _next_change(where, instant - 2 * DAY, instant)
        if instant > last:
            yield instant
            last = instant


def _in_real_time(cron: Cron, where: tzinfo, after: datetime) -> Iterator[datetime]:
    start = after + SECOND
    while True:
        # While the offset is constant, local times and instants are the same distance apart.
        offset = _offset(where, start)
        unchanged = start
        for local in cron.local_times(start.replace(tzinfo=None) + offset - SECOND):
            instant = (local - offset).replace(tzinfo=UTC)
            change = _change_within(where, unchanged, instant)
            if change is not None:
                start = change
                break
            unchanged = instant
            yield instant
        else:
            return


def _local(instant: datetime, where: tzinfo) -> datetime:
    return instant.astimezone(where).replace(tzinfo=None, fold=0)


def _offset(where: tzinfo, instant: datetime) -> timedelta:
    offset = instant.astimezone(where).utcoffset()
    assert offset is not None
    return offset


def _change_within(where: tzinfo, low: datetime, high: datetime) -> datetime | None:
    """The first clock change after `low` and not after `high`."""
    while low < high:
        step = min(low + DAY, high)
        if _offset(where, step) != _offset(where, low):
            return _next_change(where, low, step)
        low = step
    return None


def _next_change(where: tzinfo, low: datetime, high: datetime) -> datetime:
    """The first second whose offset differs from that at `low`, given that the one at `high` does."""
    before = _offset(where, low)
    span = int((high - low) / SECOND)
    left, right = 0, span
    while right - left > 1:
        middle = (left + right) // 2
        if _offset(where, low + middle * SECOND) == before:
            left = middle
        else:
            right = middle
    return low + right * SECOND
