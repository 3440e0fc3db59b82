"""Instants agree with an independent calculator over 20 zones and two years and with what people expect."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from itertools import takewhile
from zoneinfo import ZoneInfo

import pytest

from orchestrator.errors import Invalid
from orchestrator.schedules.firing.cron import parse
from orchestrator.schedules.firing.instants import first_instants, instants, next_instant, zone
from tests.unit.schedules.firing.minute_table import START, MinuteTable

ZONES = (
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",
    "America/New_York",
    "America/Los_Angeles",
    "America/St_Johns",
    "America/Sao_Paulo",
    "America/Santiago",
    "America/Havana",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "Asia/Beirut",
    "Australia/Sydney",
    "Australia/Lord_Howe",
    "Pacific/Auckland",
    "Pacific/Chatham",
)
FIXED = ("30 2 * * *", "*/30 1,2 * * *", "0 */6 * * *")
DAYS = 731


def random_expression(rng: random.Random) -> str:
    minute = rng.choice(["0", "30", "30", "15,45", str(rng.randrange(60))])
    hour = rng.choice(["*/2", "*/6", "0", "2", "1-3", "2,14", "22-23", str(rng.randrange(24))])
    day = rng.choice(["*", "*", "*", "1,15", "*/5", "10-20"])
    month = rng.choice(["*", "*", "*", "3,10", "MAR-NOV", "*/2"])
    weekday = rng.choice(["*", "*", "*", "MON-FRI", "0", "7", "sun,wed", "1-5/2"])
    return f"{minute} {hour} {day} {month} {weekday}"


@pytest.fixture(scope="module")
def compared() -> dict[str, int]:
    return {}


@pytest.mark.parametrize("name", ZONES)
def test_against_every_minute_of_two_years(name: str, compared: dict[str, int]) -> None:
    rng = random.Random(f"instants in {name}")
    table = MinuteTable(name, START, DAYS)
    end = datetime(2027, 1, 1, tzinfo=UTC)
    first = datetime(2024, 12, 31, 23, 59, tzinfo=UTC)
    count = 0
    for expression in (*FIXED, *(random_expression(rng) for _ in range(2))):
        expected = [instant for instant in table.fires(expression) if instant < end]
        found = list(takewhile(lambda at: at < end, instants(parse(expression), zone(name), first)))
        assert found == expected, expression
        # a second reader that starts anywhere sees the same
        for _ in range(5):
            at = rng.randrange(len(expected) - 1) if len(expected) > 1 else 0
            later = next((instant for instant in expected if instant > expected[at]), None)
            if later is not None:
                assert next_instant(parse(expression), zone(name), expected[at]) == later
        count += len(expected)
    compared[name] = count


def test_so_many_were_compared(compared: dict[str, int]) -> None:
    if len(compared) == len(ZONES):
        assert sum(compared.values()) >= 100_000


def berlin(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=ZoneInfo("Europe/Berlin")).astimezone(UTC)  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        pytest.param("30 2 * * *", berlin(2026, 3, 28, 3), ["2026-03-29T01:00", "2026-03-30T00:30"], id="gap"),
        pytest.param("0,30 2 * * *", berlin(2026, 3, 28, 3), ["2026-03-29T01:00", "2026-03-30T00:00"], id="gap once"),
        pytest.param("* 2 * * *", berlin(2026, 3, 29, 1), ["2026-03-29T01:00", "2026-03-30T00:00"], id="gap, each minute"),
        pytest.param("30 2 * * *", berlin(2026, 10, 24, 3), ["2026-10-25T00:30", "2026-10-26T01:30"], id="twice, once"),
        pytest.param("0 * * * *", berlin(2026, 10, 25, 1), ["2026-10-25T00:00", "2026-10-25T01:00"], id="every hour"),
        pytest.param("0 9 * * 1", berlin(2026, 11, 16, 0), ["2026-11-16T08:00", "2026-11-23T08:00"], id="1 is Monday"),
        pytest.param("0 9 1 * MON", berlin(2026, 11, 24, 0), ["2026-11-30T08:00", "2026-12-01T08:00"], id="either day"),
        pytest.param("0 0 29 2 *", berlin(2026, 1, 1, 0), ["2028-02-28T23:00", "2032-02-28T23:00"], id="leap day"),
    ],
)
def test_as_people_expect(expression: str, after: datetime, expected: list[str]) -> None:
    found = first_instants(parse(expression), zone("Europe/Berlin"), after, 2)
    assert [instant.isoformat()[:16] for instant in found] == expected


def test_a_fraction_of_a_second_loses_nothing() -> None:
    cron = parse("* * * * *")
    after = datetime(2026, 1, 1, 0, 0, 59, 999_999, tzinfo=UTC)
    for name in ("UTC", "Europe/Berlin"):
        assert next_instant(cron, zone(name), after) == datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


def test_a_day_that_never_was() -> None:
    """Samoa had no 30 December 2011."""
    found = first_instants(parse("0 9 * * *"), zone("Pacific/Apia"), datetime(2011, 12, 29, 0, tzinfo=UTC), 3)
    assert [f"{instant:%d %H:%M}" for instant in found] == ["29 19:00", "30 10:00", "30 19:00"]


@pytest.mark.parametrize("name", ["", "Europe", "Berlin", "../etc/passwd", "/etc/localtime", "CEST5", "utc\x00"])
def test_an_unknown_zone_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="no time zone"):
        zone(name)
