"""Simulated years: false alarms stay below what is stated, drops are found in time, and power is what is said. Seeded."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.schedules.power import Sight, detectable_drop, problems_for, sentence, spread
from tests.unit.schedules.drift_simulation import World, first_alarms, found_within, results, unpaired_alarms


def test_a_year_of_looks_raises_few_false_alarms() -> None:
    quiet = results(World(series=200, seed=11))
    alarms = first_alarms(quiet)
    assert float(((alarms[-1] >= 0) | (alarms[1] >= 0)).mean()) <= 0.05
    assert float((unpaired_alarms(quiet) >= 0).mean()) > 0.2, "what looking every day does to a test for one look"


def test_no_change_on_a_small_panel_with_a_short_history() -> None:
    quiet = results(World(series=300, problems=20, days=60, seed=12, shape=(1.0, 1.0)))
    alarms = first_alarms(quiet, pool=3)
    assert float(((alarms[-1] >= 0) | (alarms[1] >= 0)).mean()) <= 0.05


@pytest.mark.parametrize(("at", "shape"), [(30, (0.6, 0.4)), (150, (0.6, 0.4)), (30, (3.0, 2.0))])
def test_eight_points_are_found_within_ten_days(at: int, shape: tuple[float, float]) -> None:
    passes = results(World(series=200, days=at + 10, drop=0.08, at=at, shape=shape, seed=13))
    assert found_within(first_alarms(passes)[-1], at, 10) >= 0.9


@pytest.mark.parametrize(("problems", "shape"), [(100, (0.6, 0.4)), (300, (0.6, 0.4)), (200, (3.0, 2.0))])
def test_what_is_said_to_be_detectable_is_detected(problems: int, shape: tuple[float, float]) -> None:
    a, b = shape
    known = a * b / ((a + b) * (a + b + 1))
    drop = detectable_drop(Sight(problems, spread=known))
    passes = results(World(series=200, problems=problems, days=41, drop=drop, at=30, shape=shape, seed=14))
    assert 0.82 <= found_within(first_alarms(passes)[-1], 30, 10) <= 1.0
    half = results(World(series=200, problems=problems, days=41, drop=drop / 2, at=30, shape=shape, seed=15))
    assert found_within(first_alarms(half)[-1], 30, 10) < 0.5, "it is not far too careful"


def test_size_and_drop_are_two_sides_of_one_thing() -> None:
    sight = Sight(200)
    assert problems_for(detectable_drop(sight), sight) == pytest.approx(200, abs=1)
    assert problems_for(0.04, sight) == pytest.approx(4 * problems_for(0.08, sight), rel=0.02)
    assert detectable_drop(Sight(200, samples=4)) == pytest.approx(detectable_drop(sight) / 2)
    assert detectable_drop(Sight(1, pool=1)) == 1.0
    assert "200 problems" in sentence(sight)


def test_spread_is_estimated_without_bias() -> None:
    rng = np.random.default_rng(3)
    chance = rng.beta(0.6, 0.4, size=4000)
    passes = (rng.random((4000, 4)) < chance[:, None]).sum(1)
    assert spread((4, int(each)) for each in passes) == pytest.approx(0.12, abs=0.01)
    assert spread([(1, 1), (0, 0)]) is None
