"""What is written as cron: names, steps, words, and errors that say what to do."""

from __future__ import annotations

import pytest

from orchestrator.schedules.firing.cron import ALIASES, BadCron, parse


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("0 9 * * 1", "At 09:00 on Monday"),
        ("*/5 * * * *", "Every fifth minute of every hour"),
        ("  30   2 1,15 * * ", "At 02:30 on the first and the 15th day of month"),
        ("0 9 L * *", "At 09:00 on the last day of every month"),
        ("0 9 * * mon#1", "At 09:00 on the first Monday of the month"),
        ("@daily", "At 00:00 every day"),
    ],
)
def test_in_words(expression: str, words: str) -> None:
    assert parse(expression).words == words


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("", "has 0 fields"),
        ("0 9 * *", "has 4 fields"),
        ("0 0 9 * * *", "has 6 fields"),
        ("60 9 * * *", "the minute field '60' is not valid; it takes 0 to 59"),
        ("0 24 * * *", "the hour field '24'"),
        ("0 9 0 * *", "the day-of-month field '0'"),
        ("0 9 * FOO *", "the month field 'FOO'"),
        ("0 9 * * 8", "the day-of-week field '8'"),
        ("0 9 * * FRI-MON", "ranges from low to high"),
        ("*/0 * * * *", "the minute field"),
        ("0 9 ? * *", "the day-of-month field"),
        ("0 9 30 2 *", "never fires"),
        ("0 9 31 4,6 *", "never fires"),
        ("0 9 30 2 */8", "never fires"),
        ("@reboot", "is not known; there are @hourly"),
        ("every day", "has 2 fields"),
        ("* " * 200, "characters"),
        ("٣ 9 * * *", "the minute field"),
    ],
)
def test_errors_say_what_to_do(expression: str, says: str) -> None:
    with pytest.raises(BadCron) as caught:
        parse(expression)
    assert says in caught.value.detail


@pytest.mark.parametrize("alias", ALIASES)
def test_short_names(alias: str) -> None:
    assert parse(alias.upper()).fields == ALIASES[alias]
