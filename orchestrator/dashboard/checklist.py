"""The first steps in a new installation, with what is done already. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    title: str
    detail: str
    path: str
    done: bool


def first_steps(*, keys: bool, models: bool, datasets: bool, runs: bool, schedules: bool) -> list[Step] | None:
    """None when there is nothing left to show: runs are made and scheduled, or all is done."""
    if runs and schedules:
        return None
    return [
        Step("Add a provider key", "The demo models need none.", "/keys", keys or models),
        Step("Add a model", "By name, or synced from the provider's list.", "/models", models),
        Step("Add a dataset", "A published benchmark, a hub data set, or your own file.", "/datasets", datasets),
        Step("Run a benchmark", "A demo model on the sample takes seconds and costs nothing.", "/runs/new", runs),
        Step("Schedule it", "Measure every day, and get an alert when the score changes.", "/schedules/new", schedules),
    ]
