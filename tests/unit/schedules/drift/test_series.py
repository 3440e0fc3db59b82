"""The verdict of a series: what it is compared with, what it says, and what must not sway it."""

from __future__ import annotations

import random

import pytest

from orchestrator.schedules.drift.series import (
    WINDOWS,
    Baseline,
    BaselineKind,
    DriftComparison,
    DriftVerdict,
    Look,
    compare,
    threshold,
)
from tests.bench.drift.looks import a_look as simulated_look
from tests.bench.drift.looks import chance
from tests.bench.drift.worlds import World, results

KEYS = [("sample", f"p{number}") for number in range(60)]


def a_look(
    passing: int, name: str = "r", verdict: DriftVerdict | None = DriftVerdict.NO_CHANGE, shuffled: int | None = None
) -> Look:
    keys = list(KEYS)
    if shuffled is not None:
        random.Random(shuffled).shuffle(keys)
    return Look(name, verdict, {key: (1, int(index < passing)) for index, key in enumerate(keys)})


def judge(series: list[Look], baseline: Baseline | None = None, look: int | None = None) -> DriftComparison:
    return compare(series, baseline or Baseline(), look=look or len(series), alarm_rate=0.05)


def test_the_first_run_has_nothing_to_be_compared_with() -> None:
    found = judge([a_look(30)])
    assert found.verdict is DriftVerdict.NOT_COMPARABLE
    assert "later runs are compared" in found.sentence


def test_the_same_again_is_no_change() -> None:
    found = judge([a_look(40)] * 5)
    assert (found.verdict, found.p_value, found.flipped) == (DriftVerdict.NO_CHANGE, 1.0, ())
    assert found.effect is not None
    assert found.effect.low < found.effect.estimate == 0 < found.effect.high
    assert found.reference_runs == 4


def test_a_break_is_seen_in_one_run() -> None:
    found = judge([a_look(10), *[a_look(50)] * 6])
    assert found.verdict is DriftVerdict.WORSE
    assert found.effect is not None
    assert found.effect.estimate == pytest.approx(-40 / 60)
    assert found.window == 1
    assert len(found.flipped) == 40
    assert found.flipped[0].before > 0.5 > found.flipped[0].now
    assert found.p_value is not None
    assert found.p_value < 1e-6
    assert found.evidence is not None
    assert found.needed is not None
    assert found.evidence >= found.needed == threshold(7, 0.05)
    assert found.sentence.startswith("Worse than the baseline: -66.7 points")


def test_better_is_seen_too() -> None:
    assert judge([a_look(50), *[a_look(10)] * 6]).verdict is DriftVerdict.BETTER


def test_a_small_lasting_drop_needs_several_runs() -> None:
    (passes,) = results(World(series=1, problems=60, days=42, drop=0.15, at=32, shape=(3.0, 2.0)))
    looks = [simulated_look(row, 1) for row in reversed(passes)]
    one, all_of_them = judge(looks[9:]), judge(looks)
    assert one.verdict is DriftVerdict.NO_CHANGE
    assert all_of_them.verdict is DriftVerdict.WORSE
    assert all_of_them.window > 1


def test_later_looks_need_more() -> None:
    parts = [1 / threshold(look, 0.05) for look in range(1, 200_000)]
    assert sum(parts) == pytest.approx(0.05, rel=1e-3)
    assert sum(parts) < 0.05
    assert parts == sorted(parts, reverse=True)
    series = [a_look(25), *[a_look(40)] * 3]
    assert judge(series, look=2).evidence == judge(series, look=2000).evidence


@pytest.mark.parametrize(
    ("baseline", "runs"),
    [
        (Baseline(BaselineKind.ROLLING, runs=2), 2),
        (Baseline(BaselineKind.LAST_GOOD), 1),
        (Baseline(BaselineKind.RUN, chosen=a_look(50).results), 1),
    ],
)
def test_baselines(baseline: Baseline, runs: int) -> None:
    series = [a_look(40), a_look(10, verdict=DriftVerdict.WORSE), a_look(40), a_look(40)]
    assert judge(series, baseline).reference_runs == runs


def test_last_good_leaves_out_what_was_worse() -> None:
    series = [a_look(40), a_look(10, verdict=DriftVerdict.WORSE), a_look(40)]
    assert judge(series, Baseline(BaselineKind.LAST_GOOD)).p_value == 1.0


def test_a_chosen_run_that_is_not_there() -> None:
    assert judge([a_look(40)] * 3, Baseline(BaselineKind.RUN)).verdict is DriftVerdict.NOT_COMPARABLE


def test_results_that_are_missing_are_not_failures() -> None:
    """Infrastructure trouble leaves no result: the other problems are compared, and nothing changed."""
    trouble = Look("r", None, {key: each for key, each in a_look(40).results.items() if key[1] not in ("p1", "p2", "p3")})
    found = judge([trouble, *[a_look(40)] * 6])
    assert (found.verdict, found.problems, found.p_value) == (DriftVerdict.NO_CHANGE, 57, 1.0)


def test_too_little_in_common() -> None:
    other = Look("r", None, {("other", f"p{number}"): (1, 1) for number in range(60)})
    assert judge([a_look(40), other]).verdict is DriftVerdict.NOT_COMPARABLE
    half = Look("r", None, dict(list(a_look(40).results.items())[:20]))
    assert "Too few problems" in judge([a_look(40), half]).sentence


def test_other_numbers_of_samples_are_compared_by_shares() -> None:
    def four(passing: int) -> Look:
        return Look("r", None, {key: (4, 4 * int(index < passing)) for index, key in enumerate(KEYS)})

    assert judge([four(40), *[a_look(40)] * 6]).verdict is DriftVerdict.NO_CHANGE
    assert judge([four(5), *[a_look(50)] * 6]).verdict is DriftVerdict.WORSE


def test_the_simulation_computes_what_the_product_does() -> None:
    passes = results(World(series=3, problems=40, days=25, drop=0.3, at=18, errors=0.02))
    for row in range(3):
        for day in (1, 4, 19, 24):
            series = [simulated_look(passes[row, at], 1) for at in range(day, -1, -1)]
            found = compare(series, Baseline(), look=day + 1, alarm_rate=0.05)
            windows = [window for window in WINDOWS if window <= day]
            least = min(min(chance(passes[row], day, window, 30, 1)) for window in windows)
            assert found.evidence == pytest.approx(1 / min(1.0, 2 * len(windows) * least))
