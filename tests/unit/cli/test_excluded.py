"""How many items may be missing from a score before a command ends with an error."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.cli.errors import BadUsage, RunFailed
from orchestrator.cli.excluded import DEFAULT, raise_for_excluded, read_max_excluded
from orchestrator.cli.view.runs import result_table
from tests.manual_clock import START


def ended(n: int, n_all: int, status: str = "completed") -> dict[str, Any]:
    return {"id": "r1", "status": status, "score": {"n": n, "n_all": n_all}}


@pytest.mark.parametrize(
    ("limit", "excluded", "of", "allowed"),
    [
        (DEFAULT, 2, 100, True),
        (DEFAULT, 3, 100, False),
        (DEFAULT, 1, 10, False),
        ("25%", 5, 20, True),
        ("25 %", 6, 20, False),
        ("0.5", 10, 20, True),
        ("12.5%", 3, 20, False),
        ("0", 1, 1000, False),
        ("0", 0, 1000, True),
        ("0%", 1, 1000, False),
        ("5", 5, 6, True),
        ("100%", 19, 20, True),
    ],
)
def test_limits(limit: str, excluded: int, of: int, allowed: bool) -> None:
    assert read_max_excluded(limit).allows(excluded, of) is allowed
    run = ended(of - excluded, of)
    if allowed:
        raise_for_excluded([run], read_max_excluded(limit))
        return
    with pytest.raises(RunFailed, match=f"leaves {excluded} of {of} items out") as failed:
        raise_for_excluded([run], read_max_excluded(limit))
    assert failed.value.exit_code == 3


@pytest.mark.parametrize("text", ["", "x", "-1", "101%", "1.5", "2 items", "nan", "1e3"])
def test_what_is_no_limit(text: str) -> None:
    with pytest.raises(BadUsage, match="--max-excluded"):
        read_max_excluded(text)


def test_only_completed_runs_are_looked_at() -> None:
    raise_for_excluded(
        [ended(0, 20, "failed"), {"run_id": "m", "status": "completed", "score": None}], read_max_excluded("0")
    )


def test_a_score_over_several_benchmarks_is_named_as_pooled_and_shown_for_each() -> None:
    def part(passed: int, n: int, over: int = 1) -> dict[str, Any]:
        return {"estimate": passed / n, "low": 0.1, "high": 0.9, "passed": passed, "n": n, "n_all": n, "pooled_over": over}

    run = {
        "id": "r",
        "kind": "benchmark",
        "model": "m",
        "status": "completed",
        "benchmarks": ["one", "two"],
        "score": part(5, 8, 2),
        "scores": {"one": part(1, 4), "two": part(4, 4)},
        "outcomes": {"passed": 5, "wrong_answer": 3},
        "started_at": None,
        "completed_at": None,
        "cost_usd": 0.0,
        "passed": 5,
    }
    table = result_table([run], START)
    scores = list(table.columns[2].cells)
    assert [str(cell) for cell in scores] == ["62.5 % pooled", "25.0 %", "100.0 %"]
    assert [str(cell).strip() for cell in table.columns[0].cells] == ["m", "one", "two"]
    assert [str(cell) for cell in table.columns[4].cells] == ["5/8", "1/4", "4/4"]
