"""Cron expressions: validation, matching times, and meaning in words. The only module that imports `cronsim`.

Local times here have no time zone: `instants` converts them to instants and handles clock changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from cronsim import CronSim, CronSimError

from orchestrator.errors import Invalid

MAX_CHARS = 200
ANY_TIME = datetime(2024, 1, 1)

ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

FIELDS = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31, L for the last, LW for the last weekday",
    "month": "1 to 12 or JAN to DEC",
    "day-of-week": "0 to 7 (0 and 7 are Sunday) or SUN to SAT, MON#1 for the first Monday, 5L for the last Friday",
}
HINT = "five fields: minute hour day-of-month month day-of-week, for example '0 9 * * MON-FRI'"


class BadCron(Invalid):
    title = "Not a cron expression"


@dataclass(frozen=True)
class Cron:
    """A valid expression."""

    written: str
    fields: str
    """The five fields in the form used for computing."""
    by_the_hour: bool
    """The hour field starts with `*`: it means an interval in real time, which clock changes do not affect."""

    def local_times(self, after: datetime) -> Iterator[datetime]:
        """Every matching local time later than `after` (both without zone), in order."""
        return CronSim(self.fields, after)

    @property
    def words(self) -> str:
        return str(CronSim(self.fields, ANY_TIME).explain())


def parse(expression: str) -> Cron:
    """Raises `BadCron` with a sentence that names the field and its valid values."""
    written = " ".join(expression.split())
    if len(written) > MAX_CHARS:
        raise BadCron(f"the cron expression has {len(written)} characters, at most {MAX_CHARS} are allowed")
    fields = ALIASES.get(written.lower(), written)
    if fields.startswith("@"):
        raise BadCron(f"{written!r} is not known; there are {', '.join(ALIASES)}, or write {HINT}")
    parts = fields.split()
    if len(parts) != len(FIELDS):
        raise BadCron(f"{written!r} has {len(parts)} fields; write {HINT}")
    for index, (name, part) in enumerate(zip(FIELDS, parts, strict=True)):
        _check(written, name, part, index)
    by_the_hour = parts[1].startswith("*")
    try:
        next(CronSim(fields, ANY_TIME))
    except CronSimError:
        raise BadCron(f"{written!r} never fires: no month that it names has that day") from None
    except StopIteration:
        raise BadCron(f"{written!r} does not fire within 50 years; check day and month") from None
    return Cron(written, fields, by_the_hour)


def _check(written: str, name: str, part: str, index: int) -> None:
    alone = ["*"] * len(FIELDS)
    alone[index] = part
    try:
        CronSim(" ".join(alone), ANY_TIME)
    except (CronSimError, AssertionError, ValueError):
        raise BadCron(
            f"{written!r}: the {name} field {part!r} is not valid; it takes {FIELDS[name]}, "
            "lists (1,3), ranges from low to high (1-5), steps (*/5) and * for all"
        ) from None
