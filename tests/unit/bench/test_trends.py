"""Exponents of curves, and whether a noisy series over time grows."""

from __future__ import annotations

import random
from xml.etree import ElementTree

import pytest

from tests.bench.plots import figure, stacked
from tests.bench.trends import Samples, drift, exponent


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5, 2.0])
def test_the_exponent_of_a_power_is_found(power: float) -> None:
    assert exponent([(x, 3 * x**power) for x in (10, 100, 1000)]) == pytest.approx(power)


def noisy(slope: float, *, count: int = 200, seed: int = 1) -> Samples:
    rng = random.Random(seed)
    return [(5.0 * number, 100 + slope * number + rng.gauss(0, 2)) for number in range(count)]


def test_noise_does_not_grow_and_a_leak_within_it_does() -> None:
    assert not any(drift([noisy(0, seed=seed)]).grows for seed in range(50))
    assert all(drift([noisy(0.05, seed=seed)]).grows for seed in range(50))
    assert not any(drift([noisy(-0.05, seed=seed)]).grows for seed in range(50))


def test_a_step_between_two_lives_is_no_growth_and_growth_in_each_is() -> None:
    def after(life: Samples, level: float) -> Samples:
        return [(at + 1000, value + level) for at, value in life]

    assert not drift([noisy(0), after(noisy(0, seed=2), 50)]).grows
    assert drift([noisy(0.1), after(noisy(0.1, seed=2), -50)]).grows
    leak = drift([noisy(0.1), after(noisy(0.1, seed=2), -50)])
    assert leak.per_hour == pytest.approx(0.1 / 5 * 3600, rel=0.2)


def test_a_small_but_certain_slope_is_not_called_growth() -> None:
    assert not drift([[(5.0 * number, 100 + 0.001 * number) for number in range(200)]]).grows


@pytest.mark.parametrize("logarithmic", [True, False])
def test_pictures_are_well_formed_and_show_every_series(logarithmic: bool) -> None:
    lines = {"a < b": [(1.0, 2.0), (1000.0, 40.0)], "c & d": [(1.0, 1.0), (1000.0, 0.5)]}
    picture = figure("One & two", lines, x_title="x", y_title="y", logarithmic=logarithmic)
    root = ElementTree.fromstring(stacked([picture, picture]))
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert texts.count("a < b") == texts.count("c & d") == 2
    drawn = [element for element in root.iter() if element.tag.endswith("polyline")]
    assert len(drawn) == 4
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for line in drawn:
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height
