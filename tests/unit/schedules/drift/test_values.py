"""Drift of values between 0 and 1: false alarms stay below what is stated, drops are found, and power is what is said.
Seeded.
"""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.schedules.drift.evidence import Record, chances
from orchestrator.schedules.drift.power import DetectionPower, detectable_drop, spread
from orchestrator.schedules.drift.series import Baseline, DriftVerdict, Look, compare
from tests.bench.coverage import value_change_covers

PROBLEMS = 25
NOISE = 0.12


def series(rng: np.random.Generator, days: int, *, drop: float = 0.0, at: int = 0) -> np.ndarray:
    """Values of problems of very unequal difficulty, day by day."""
    own = rng.beta(2, 1, PROBLEMS)
    means = np.array([own - (drop if day >= at and drop else 0.0) for day in range(days)])
    return np.clip(means + rng.normal(0, NOISE, means.shape), 0, 1)


def a_look(row: np.ndarray) -> Look:
    return Look("", None, {("b", str(at)): (1, float(value)) for at, value in enumerate(row)})


def first_alarm(values: np.ndarray, verdicts: tuple[DriftVerdict, ...], start: int = 1) -> int | None:
    looks = [a_look(row) for row in values]
    for day in range(start, len(looks)):
        newest_first = looks[day::-1][:40]
        if compare(newest_first, Baseline(), look=day + 1, alarm_rate=0.05).verdict in verdicts:
            return day
    return None


def test_looking_every_day_raises_few_false_alarms() -> None:
    rng = np.random.default_rng(1)
    changed = (DriftVerdict.WORSE, DriftVerdict.BETTER)
    alarms = [first_alarm(series(rng, 20), changed) for _ in range(8)]
    assert sum(alarm is not None for alarm in alarms) <= 1


def test_one_look_exceeds_its_level_no_more_often_than_stated() -> None:
    rng = np.random.default_rng(2)
    p_values = []
    for _ in range(250):
        values = series(rng, 8)
        records = [
            Record(tuple((1, float(value)) for value in values[1:, at]), ((1, float(values[0, at])),))
            for at in range(PROBLEMS)
        ]
        p_values.append(chances(records))
    for level, most in ((0.01, 0.03), (0.05, 0.085), (0.2, 0.25)):
        for side in (0, 1):
            assert np.mean([p_value[side] <= level for p_value in p_values]) <= most
    assert np.mean([min(p_value) <= 0.25 for p_value in p_values]) > 0.3, "it is not far too careful"


def test_a_drop_that_is_said_to_be_detectable_is_detected() -> None:
    """The values pass nowhere; only their mean drops."""
    rng = np.random.default_rng(3)
    history = series(np.random.default_rng(4), 30)
    moments = [(len(column), float(column.sum()), float((column**2).sum())) for column in history.T]
    known = spread(moments)
    assert known == pytest.approx(NOISE**2, rel=0.4)  # a little less: values end at 0 and 1
    drop = detectable_drop(DetectionPower(PROBLEMS, spread=NOISE**2))
    assert drop < 0.1, "as passes and failures it would be three times as much"
    alarms = [first_alarm(series(rng, 40, drop=drop, at=30), (DriftVerdict.WORSE,), start=30) for _ in range(8)]
    assert sum(alarm is not None for alarm in alarms) >= 5


def test_the_effect_covers_the_change_of_the_panel() -> None:
    rng = np.random.default_rng(6)
    for earlier, later in ((1, 1), (20, 5)):
        assert value_change_covers(100, earlier, later, 300, rng) >= 0.94


def test_the_sentence_and_flips_speak_of_values() -> None:
    before = [Look("", None, {("b", str(at)): (2, 1.6) for at in range(20)})] * 10
    now = Look("", None, {("b", str(at)): (2, 0.7) for at in range(20)})
    comparison = compare([now, *before], Baseline(), look=11, alarm_rate=0.05)
    assert comparison.effect is not None
    assert comparison.effect.estimate == pytest.approx(-0.45)
    assert {(flip.before, flip.now) for flip in comparison.flipped} == {(0.8, 0.35)}
