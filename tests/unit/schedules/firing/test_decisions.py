"""What becomes of an instant, as a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.schedules.firing.decisions import FireOutcome, Misfire, Overlap, Rules, decide, sentence

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("age", "rules", "newest", "under_way", "expected"),
    [
        pytest.param(0, Rules(), True, False, "fired", id="on time"),
        pytest.param(60, Rules(), True, False, "fired", id="an hour late"),
        pytest.param(61, Rules(), True, False, "skipped_misfire", id="more than an hour late"),
        pytest.param(61, Rules(), False, False, "skipped_misfire", id="old, and not the newest"),
        pytest.param(5, Rules(), False, False, "coalesced", id="a newer one is due"),
        pytest.param(0, Rules(), True, True, "skipped_overlap", id="the run before goes on"),
        pytest.param(0, Rules(overlap=Overlap.ALLOW), True, True, "fired", id="overlap allowed"),
        pytest.param(0, Rules(paused=True), True, True, "skipped_paused", id="paused"),
        pytest.param(90, Rules(paused=True), False, False, "skipped_paused", id="paused and old"),
        pytest.param(1, Rules(misfire=Misfire.SKIP), True, False, "fired", id="skip: a minute is not late"),
        pytest.param(2, Rules(misfire=Misfire.SKIP), True, False, "skipped_misfire", id="skip: late"),
        pytest.param(20, Rules(grace=10 * MINUTE), True, False, "skipped_misfire", id="own grace"),
        pytest.param(-5, Rules(), True, False, "fired", id="the clock went back a little"),
    ],
)
def test_decide(age: int, rules: Rules, newest: bool, under_way: bool, expected: str) -> None:
    outcome = decide(NOW - age * MINUTE, NOW, rules, newest=newest, under_way=under_way)
    assert outcome == expected
    assert isinstance(sentence(outcome, NOW - age * MINUTE, NOW), str)


def test_every_outcome_has_a_sentence() -> None:
    assert all(sentence(outcome, NOW - 2 * MINUTE, NOW) for outcome in FireOutcome)
