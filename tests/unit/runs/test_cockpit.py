"""The cockpit: which items are in work, in which phase, how fast it goes, and the timeline."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.runs.queueing.drafts import BenchmarkTask
from orchestrator.runs.tables import ContainerRun
from orchestrator.runs.views.cockpit import Finished, Key, cockpit, open_keys
from runner.contract.run_spec import call_key

START = datetime(2026, 5, 1, 12, tzinfo=UTC)
PLAN: list[Key] = [("sample", f"p{n}", 0) for n in range(6)]


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def a_run(**changed: Any) -> ContainerRun:
    fields: dict[str, Any] = {
        "id": "r",
        "benchmarks": ["sample"],
        "sample_size": 6,
        "instance_type": "lite",
        "deadline_s": 60,
        "task": BenchmarkTask(benchmarks=[]),
        "created_at": START,
        "started_at": START,
        "status": "running",
        "stage": "running",
        "concurrency": 3,
        "items_total": 6,
    }
    return ContainerRun(**{**fields, **changed})


def a_call(state: str, created: float, settled: float | None = None, provider_s: float = 0.0) -> Any:
    end = None if settled is None else at(settled)
    return SimpleNamespace(state=state, created_at=at(created), settled_at=end, provider_s=provider_s, reserved_usd=0.5)


def test_the_first_open_items_of_the_plan_are_in_work() -> None:
    assert open_keys(PLAN, [PLAN[0], PLAN[2]], 3) == [PLAN[1], PLAN[3], PLAN[4]]
    assert open_keys(PLAN, PLAN, 3) == []


@pytest.mark.parametrize(
    ("call", "phase"),
    [
        (None, "preparing"),
        (a_call("reserved", 1), "waiting"),
        (a_call("sent", 1), "asking"),
        (a_call("settled", 1, 3), "judging"),
    ],
)
def test_the_call_of_an_item_says_its_phase(call: Any, phase: str) -> None:
    calls = {} if call is None else {call_key(*PLAN[0]): call}
    shown = cockpit(a_run(), PLAN[:1], calls, [], at(5))
    assert [slot.phase for slot in shown.slots] == [phase]
    assert shown.free == 2
    assert shown.reserved_usd == (0.5 if phase in ("waiting", "asking") else 0.0)


def test_rate_and_time_left_follow_the_last_minutes() -> None:
    ended = [Finished(key, "passed", at(30 * (n + 1))) for n, key in enumerate(PLAN[:4])]
    shown = cockpit(a_run(items_done=4), PLAN[4:], {}, ended, at(120))
    assert shown.per_minute == pytest.approx(2.0)
    assert shown.left_s == pytest.approx(60.0)
    assert cockpit(a_run(items_done=4, status="completed"), [], {}, ended, at(999)).per_minute is None


def test_the_timeline_has_the_phases_of_each_item() -> None:
    calls = {call_key(*PLAN[0]): a_call("settled", 0, 6, provider_s=4)}
    shown = cockpit(
        a_run(items_done=2),
        [],
        calls,
        [Finished(PLAN[0], "passed", at(8)), Finished(PLAN[1], "wrong_answer", at(10))],
        at(10),
    )
    first = shown.bars[0]
    assert [(part.phase, part.x, part.width) for part in first.parts] == [
        ("waiting", 0.0, 120.0),
        ("asking", 120.0, 240.0),
        ("judging", 360.0, 120.0),
    ]
    assert first.words == "waiting 2.0 s, asking 4.0 s, judging 2.0 s"
    assert (shown.begins, shown.ends) == (at(0), at(10))
