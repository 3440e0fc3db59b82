"""The first steps are shown until runs are made and scheduled."""

from __future__ import annotations

from orchestrator.dashboard.checklist import first_steps

NOTHING = {"keys": False, "models": False, "datasets": False, "runs": False, "schedules": False}


def test_nothing_is_done_at_first() -> None:
    steps = first_steps(**NOTHING)
    assert steps is not None
    assert [step.done for step in steps] == [False] * 5
    assert [step.path for step in steps] == ["/keys", "/models", "/datasets", "/runs/new", "/schedules/new"]


def test_a_model_of_a_provider_means_that_its_key_is_there() -> None:
    steps = first_steps(**NOTHING | {"models": True})
    assert steps is not None
    assert [step.title for step in steps if step.done] == ["Add a provider key", "Add a model"]


def test_who_runs_on_a_schedule_has_arrived() -> None:
    assert first_steps(**NOTHING | {"runs": True, "schedules": True}) is None
