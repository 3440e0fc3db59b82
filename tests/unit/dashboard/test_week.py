"""What the overview says of the last days."""

from __future__ import annotations

from datetime import date, timedelta

from orchestrator.dashboard.utilisation import STEPS, vcpu_over_time
from orchestrator.dashboard.week import DAYS, runs_per_day, score_changes, spend_per_day
from orchestrator.runs.reports.queries import ScoredRun
from orchestrator.runs.views.series import series
from tests.manual_clock import START


def a_score(run_id: str, days_ago: float, passed: int) -> ScoredRun:
    share = passed / 100
    score = {
        "estimate": share, "low": share - 0.05, "high": share + 0.05, "n": 100, "passed": passed, "n_all": 100,
        "estimate_all": share, "comparable": True,
        "samples": {"sample": {"id": "s", "pack_digest": "d", "problems": 100, "prompt_version": ""}},
    }  # fmt: skip
    at = START - timedelta(days=days_ago)
    return ScoredRun(run_id, 1, ("sample",), score, 100, 0.0, at, at)


def test_a_drop_in_steps_is_compared_with_the_score_of_a_week_ago() -> None:
    runs = [a_score("new", 0, 60), a_score("yesterday", 1, 70), a_score("before", 8, 80), a_score("old", 20, 90)]
    (change,) = score_changes(series(runs, {1: "m"}), START - timedelta(days=7))
    assert (change.before, change.now, change.previous_id, change.run_id) == (0.8, 0.6, "before", "new")
    assert change.beyond


def test_small_changes_and_old_runs_are_not_news() -> None:
    week = START - timedelta(days=7)
    assert score_changes(series([a_score("new", 0, 81), a_score("old", 9, 80)], {1: "m"}), week) == []
    assert score_changes(series([a_score("new", 8, 60), a_score("old", 9, 80)], {1: "m"}), week) == []
    assert score_changes(series([a_score("only", 0, 60)], {1: "m"}), week) == []


def test_days_without_runs_have_no_bar_and_unended_runs_are_active() -> None:
    today = date(2026, 3, 14)
    figure = runs_per_day([("2026-03-14", "completed", 3), ("2026-03-14", "pending", 1), ("2026-03-01", "failed", 2)], today)
    assert figure is not None
    assert len(figure.rows) == DAYS
    assert figure.columns == ["Day", "completed", "failed", "active"]
    assert figure.rows[0] == ["03-01", 0, 2, 0]
    assert figure.rows[-1] == ["03-14", 3, 0, 1]
    assert runs_per_day([], today) is None


def test_only_the_dearest_models_have_a_colour_of_their_own() -> None:
    today = date(2026, 3, 14)
    figure = spend_per_day({("2026-03-14", f"m{n}"): float(n) for n in range(1, 9)}, today)
    assert figure is not None
    assert figure.columns == ["Day", "m8", "m7", "m6", "m5", "m4", "others"]
    assert figure.rows[-1][-1] == 1 + 2 + 3


def test_a_container_counts_for_the_part_of_a_step_that_it_ran() -> None:
    spans = [("standard-1", START - timedelta(hours=3), START), ("lite", START - timedelta(hours=1), None)]
    figure = vcpu_over_time(spans, lambda name: 2.0 if name == "standard-1" else 0.5, START, 4)
    assert figure is not None
    assert len(figure.rows) == STEPS
    hours = sum(float(cell or 0) * 6 for row in figure.rows for cell in row[1:])
    assert round(hours, 2) == 2.0 * 3 + 0.5
    assert vcpu_over_time([], lambda _: 1.0, START, 4) is None
