"""The chart of a schedule: baseline of the runs before, a new panel begins anew, alarms lead to what changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from orchestrator.schedules.chart import FireScore, chart_points, drawing, lasting_alerts
from orchestrator.schedules.drift.series import BaselineKind

START = datetime(2026, 3, 1, tzinfo=UTC)


def fire(day: int, score: float, panel: int = 1, verdict: str | None = "no_change") -> FireScore:
    return FireScore(START + timedelta(days=day), f"run{day}", panel, verdict, True, score, score - 0.1, score + 0.1, 100)


def test_the_baseline_is_of_the_runs_before_on_the_same_panel() -> None:
    fires = [fire(0, 0.8), fire(1, 0.6), fire(2, 0.7), fire(3, 0.5, panel=2), fire(4, 0.9, panel=2)]
    points = chart_points(fires, {"run4": 7}, BaselineKind.ROLLING, 30)
    assert [point.base and round(point.base, 3) for point in points] == [None, 0.8, 0.7, None, 0.5]
    assert points[4].alert == 7
    assert points[2].base_low is not None
    assert points[2].base_low < 0.7 < (points[2].base_high or 0)


def test_a_rolling_baseline_has_as_many_runs_as_the_schedule_says_and_a_chosen_one_stays() -> None:
    fires = [fire(0, 0.2), fire(1, 0.8), fire(2, 0.6, verdict="worse"), fire(3, 0.7)]
    assert chart_points(fires, {}, BaselineKind.ROLLING, 1)[3].base == 0.6
    assert chart_points(fires, {}, BaselineKind.LAST_GOOD, 30)[3].base == 0.8
    assert {point.base for point in chart_points(fires, {}, BaselineKind.RUN, 30, "run1")} == {0.8}


def test_the_drawing_marks_alarms_and_panels_inside_its_frame() -> None:
    fires = [fire(0, 0.8), fire(1, 0.8), fire(2, 0.3, verdict="worse"), fire(3, 0.8, panel=2)]
    picture = drawing(chart_points(fires, {"run2": 5}, BaselineKind.ROLLING, 30), fires)
    assert picture is not None
    assert [mark.css for mark in picture.marks] == ["plain", "plain", "worse", "plain"]
    assert picture.marks[2].href == "/alerts/5"
    assert [version for _, version in picture.panels] == [2]
    assert all(0 <= mark.x <= 720 and 0 <= mark.high_y <= mark.y <= mark.low_y <= 200 for mark in picture.marks)
    assert picture.words == "4 runs, newest 80.0 %, 1 alarm"


def test_later_runs_of_a_lasting_drop_share_its_alert() -> None:
    worse = [fire(1, 0.3, verdict="worse"), fire(2, 0.3, verdict="worse")]
    fires = [fire(0, 0.8), *worse, fire(3, 0.8), fire(4, 0.3, 2, "worse")]
    assert lasting_alerts(fires, {"run1": 5}) == {"run1": 5, "run2": 5}


def test_one_run_is_no_chart() -> None:
    assert drawing(chart_points([fire(0, 0.8)], {}, BaselineKind.ROLLING, 30), [fire(0, 0.8)]) is None
