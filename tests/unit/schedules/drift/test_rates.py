"""Simulated years: false alarms stay below what is stated, drops are found in time, and power is what is said. Seeded.

`python -m tests.bench.drift` is the long version.
"""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.schedules.drift.power import DetectionPower, detectable_drop, problems_for, sentence, spread
from tests.bench.drift.looks import false_alarms, first_alarms, found_within
from tests.bench.drift.worlds import World

QUIET = {
    "alike": World(series=25, days=365, seed=11),
    "a small panel": World(series=40, problems=20, days=120, seed=12, shape=(1.0, 1.0)),
    "answers are often repeated": World(series=20, days=100, stay=0.6, seed=13),
    "several samples": World(series=20, problems=40, days=100, samples=4, seed=14),
    "trouble": World(series=20, problems=60, days=100, errors=0.05, seed=15),
}


@pytest.mark.parametrize("name", QUIET)
def test_looking_every_day_raises_few_false_alarms(name: str) -> None:
    alarms, usual = first_alarms(QUIET[name])
    assert false_alarms(alarms) <= 0.05
    assert float((usual >= 0).mean()) > 0.1, "what looking every day does to a test for one look"


DROPPED = {
    "on day 30": World(series=20, days=40, drop=0.08, at=30, seed=21),
    "on day 150": World(series=12, days=160, drop=0.08, at=150, seed=22),
    "problems of middling difficulty": World(series=20, days=40, drop=0.08, at=30, shape=(3.0, 2.0), seed=23),
    "some problems are lost": World(series=20, days=40, drop=0.08, at=30, subset=True, seed=24),
    "trouble besides": World(series=12, days=40, drop=0.08, at=30, errors=0.02, seed=25),
}


@pytest.mark.parametrize("name", DROPPED)
def test_eight_points_are_found_within_ten_days(name: str) -> None:
    world = DROPPED[name]
    alarms, _ = first_alarms(world)
    assert found_within(alarms[-1], world.at, 10) >= 0.9


@pytest.mark.parametrize(("problems", "shape"), [(100, (0.6, 0.4)), (200, (3.0, 2.0))])
def test_what_is_said_to_be_detectable_is_detected(problems: int, shape: tuple[float, float]) -> None:
    a, b = shape
    known = a * b / ((a + b) * (a + b + 1))
    drop = detectable_drop(DetectionPower(problems, spread=known))
    world = World(series=50, problems=problems, days=40, drop=drop, at=30, shape=shape, seed=31)
    assert 0.78 <= found_within(first_alarms(world)[0][-1], 30, 10) <= 1.0
    half = World(series=25, problems=problems, days=40, drop=drop / 2, at=30, shape=shape, seed=32)
    assert found_within(first_alarms(half)[0][-1], 30, 10) < 0.5, "it is not far too careful"


def test_size_and_drop_are_two_sides_of_one_thing() -> None:
    sight = DetectionPower(200)
    assert problems_for(detectable_drop(sight), sight) == pytest.approx(200, abs=1)
    assert problems_for(0.04, sight) == pytest.approx(4 * problems_for(0.08, sight), rel=0.02)
    assert detectable_drop(DetectionPower(200, samples=4)) == pytest.approx(detectable_drop(sight) / 2)
    assert detectable_drop(DetectionPower(1, pool=1)) == 1.0
    assert "200 problems" in sentence(sight)


def test_spread_is_estimated_without_bias() -> None:
    rng = np.random.default_rng(3)
    chance = rng.beta(0.6, 0.4, size=4000)
    passes = (rng.random((4000, 4)) < chance[:, None]).sum(1)
    assert spread((4, int(each), int(each)) for each in passes) == pytest.approx(0.12, abs=0.01)
    assert spread([(1, 1, 1), (0, 0, 0)]) is None
