"""What is shown of a run, event by event; and the demo's choice of an instance type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.cli.api.stream import StreamEvent
from orchestrator.cli.local.demo import bodies, choose_type
from orchestrator.cli.view.live import RunView

VIEW = RunView("r", "m", total=10)


@pytest.mark.parametrize(
    ("event", "changed"),
    [
        (StreamEvent("transition", {"status": "starting", "attempt": 1}), {"status": "starting", "attempt": 1}),
        (
            StreamEvent("transition", {"status": "pending", "attempt": 1, "reason": "x", "message": "It\x1b died."}),
            {"attempt": 1, "note": "It\\x1b died."},
        ),
        (
            StreamEvent("transition", {"status": "running", "attempt": 1, "desired": "cancel"}),
            {"status": "running", "attempt": 1, "note": "is being cancelled"},
        ),
        (StreamEvent("stage", {"stage": "provision"}), {"stage": "provision"}),
        (StreamEvent("progress", {"done": 3, "passed": 2, "total": 10}), {"done": 3, "passed": 2}),
        (StreamEvent("heartbeat", {"waiting_for": "the provider"}), {"note": "the provider"}),
        (StreamEvent("heartbeat", {"waiting_for": None}), {}),
        (StreamEvent("log", {"message": "x"}), {}),
        (StreamEvent("something new", {}), {}),
    ],
)
def test_events_change_the_view(event: StreamEvent, changed: dict[str, Any]) -> None:
    assert VIEW.after(event) == replace(VIEW, **changed)


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({}, "pending"),
        ({"status": "running", "stage": "provision", "attempt": 1}, "provision"),
        ({"status": "running", "stage": "running", "attempt": 2}, "running (attempt 2)"),
        ({"status": "completed", "stage": "uploading", "attempt": 1}, "completed"),
    ],
)
def test_where_it_is(changed: dict[str, Any], word: str) -> None:
    assert replace(VIEW, **changed).word == word


def fleet(vcpu: float | None, memory_gib: float | None, **types: tuple[float, float]) -> dict[str, Any]:
    offered = types or {"lite": (0.0625, 0.25), "standard_1": (0.5, 4), "standard_2": (1, 6), "standard_3": (2, 8)}
    return {
        "capacity": {"vcpu": vcpu, "memory_bytes": None if memory_gib is None else memory_gib * 2**30},
        "instance_types": [
            {
                "name": name.replace("_", "-"),
                "vcpu": cpu,
                "memory_bytes": gib * 2**30,
                "fits": vcpu is None or (cpu <= vcpu and gib <= (memory_gib or 99)),
            }
            for name, (cpu, gib) in offered.items()
        ],
    }


@pytest.mark.parametrize(
    ("state", "chosen"),
    [
        pytest.param(fleet(2, 20), "standard-2", id="both fit at once"),
        pytest.param(fleet(None, None), "standard-2", id="engine not known yet"),
        pytest.param(fleet(2, 8.5), "standard-1", id="memory for a smaller one"),
        pytest.param(fleet(1, 20), "standard-1", id="one core"),
        pytest.param(fleet(4, 3), "lite", id="little memory"),
        pytest.param(fleet(4, 64, own=(3, 8), tiny=(2, 4)), "tiny", id="own types"),
        pytest.param(fleet(4, 64, own=(3, 8)), "own", id="one after the other"),
        pytest.param(fleet(0.5, 1, own=(3, 8)), None, id="nothing fits"),
    ],
)
def test_the_demo_takes_a_type_that_fits(state: dict[str, Any], chosen: str | None) -> None:
    assert choose_type(state, 2) == chosen


def test_the_demo_runs_both_models_on_the_whole_sample() -> None:
    assert [(body["model_id"], body["benchmarks"], body["subset_pct"]) for body in bodies("lite")] == [
        ("demo-strong", ["sample"], 100.0),
        ("demo-weak", ["sample"], 100.0),
    ]
    assert "instance_type" not in bodies(None)[0]
