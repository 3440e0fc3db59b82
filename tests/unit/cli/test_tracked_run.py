"""What a tracker is told of a run."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.cli.trackers.tracked_run import tracked_run

SCORE = {
    "estimate": 0.5,
    "low": 0.25,
    "high": 0.75,
    "n": 10,
    "passed": 5,
    "excluded": 0,
    "pass_at_k": {"1": 0.5},
    "flips": 3,
}


def a_run(**changed: Any) -> dict[str, Any]:
    times = dict.fromkeys(("created_at", "started_at", "completed_at"), "2026-11-18T10:00:00+00:00")
    return {
        "id": "r1",
        "kind": "benchmark",
        "model": "m1",
        "benchmarks": ["sample"],
        "seed": 0,
        "status": "completed",
        "score": SCORE,
        "plan": [{"name": "sample", "pack_digest": "sha256:d"}],
        "outcomes": {"passed": 5, "wrong_answer": 5},
        "cost_usd": None,
        **times,
        **changed,
    }


def test_parameters_metrics_and_tags() -> None:
    run = tracked_run(a_run())
    assert (run.name, run.status, run.started_ms) == (
        "m1 on sample",
        "FINISHED",
        1_794_996_000_000,
    )
    assert run.params == {
        "kind": "benchmark",
        "benchmarks": "sample",
        "seed": "0",
        "model": "m1",
        "pack_digest.sample": "sha256:d",
    }
    assert run.metrics["score.low"] == 0.25
    assert run.metrics["score.pass_at_1"] == 0.5
    assert run.metrics["outcome.wrong_answer"] == 5
    assert "cost_usd" not in run.metrics
    assert run.tags["benchyard.run_id"] == "r1"


def test_each_of_several_benchmarks_has_its_metrics() -> None:
    run = tracked_run(a_run(benchmarks=["a", "b@c"], scores={"a": SCORE, "b@c": SCORE}))
    assert {"score.estimate", "score.a.estimate", "score.b_c.estimate"} <= run.metrics.keys()


@pytest.mark.parametrize(("status", "there"), [("failed", "FAILED"), ("cancelled", "KILLED"), ("running", "RUNNING")])
def test_states(status: str, there: str) -> None:
    assert tracked_run(a_run(status=status, completed_at=None, score=None)).status == there
