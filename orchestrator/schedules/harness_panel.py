"""Schedules of harnesses: which fields they have, and their panel. Pure.

A harness chooses its items itself, so its panel names no problems; it names the digest of the harness. Another harness, or a
changed command, file or image, is another panel with its own series. Runs of one panel are compared by the ids of items.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from orchestrator.errors import Invalid
from orchestrator.harnesses.service import CONCURRENCY, harness_task
from orchestrator.schedules.tables import Schedule, SchedulePanel
from runner.contract.harness import HarnessTask

OF_PROBLEMS = {"sample_size": 0, "benchmarks": [], "samples_per_problem": 1, "seed": 0, "draw": "all"}
"""Fields that say which problems are asked, with their values in a schedule of a harness, which takes no others."""


def with_harness(current: Schedule | None, changes: dict[str, Any]) -> dict[str, Any]:
    """The changes with all that follows from them: a harness takes the place of benchmarks, and the other way round."""
    changes = {name: value for name, value in changes.items() if value is not None or name not in ("sample_size", "harness")}
    task: HarnessTask | None = changes.get("harness")
    had = current.harness if current is not None else None
    if task is None and had is not None and "sample_size" in changes:  # from here on it measures benchmarks
        return {"benchmarks": [], **changes, "harness": None}
    if task is None and had is None:
        if current is None and "sample_size" not in changes:
            raise Invalid("sample_size: say how many problems of each benchmark to draw, or name a harness")
        return changes
    for name, only in OF_PROBLEMS.items():
        if name in changes and changes[name] != only:
            raise Invalid(
                f"{name}: a harness chooses its items itself; say it in the harness's own command. To measure benchmarks "
                "instead, leave out harness and give sample_size"
            )
    if task is None:
        return {name: value for name, value in changes.items() if name not in OF_PROBLEMS}
    at_once = {} if had is not None else {"concurrency": CONCURRENCY}
    return {**at_once, **changes, **OF_PROBLEMS, "benchmarks": [task.name]}


def harness_panel(schedule: Schedule, task: HarnessTask, now: datetime) -> SchedulePanel:
    """The version is set when it is stored."""
    return SchedulePanel(
        model_id=schedule.model_id,
        version=0,
        seed=schedule.seed,
        draw=schedule.draw,
        how=f"{task.name}: the harness chooses its items; runs are compared by the ids that it gives them.",
        benchmarks=[part.model_dump() for part in harness_task(task).benchmarks],
        problems=0,
        created_at=now,
    )
