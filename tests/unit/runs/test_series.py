"""A line of scores is of one sample; a run of several benchmarks is a point in the line of each."""

from __future__ import annotations

from typing import Any

from orchestrator.runs.reports.queries import ScoredRun
from orchestrator.runs.views.series import series
from tests.manual_clock import START


def part(share: float, n: int = 36, *, comparable: bool = True) -> dict[str, Any]:
    return {
        "estimate": share,
        "low": 0.0,
        "high": 1.0,
        "n": n,
        "n_all": n,
        "passed": round(share * n),
        "comparable": comparable,
    }


def run(run_id: str, score: dict[str, Any], sample: str | None = "s", *benchmarks: str) -> ScoredRun:
    names = benchmarks or ("sample",)
    samples = {name: {"id": sample, "pack_digest": "d", "problems": 1, "prompt_version": "v"} for name in names}
    stored = score if sample is None else {**score, "samples": samples}
    return ScoredRun(run_id, 1, names, stored, 1, 0.0, START, START)


def test_only_runs_on_the_same_sample_are_in_the_line() -> None:
    runs = [run("new", part(0.5)), run("quick", part(1.0, 3), "other"), run("old", part(0.4)), run("older", part(0.3))]
    (found,) = series(runs, {1: "m"})
    assert (found.run_id, found.score.n, found.runs, found.other_samples) == ("new", 36, 3, 1)
    assert found.trend is not None


def test_a_score_that_is_not_comparable_is_no_point_unless_there_is_nothing_else() -> None:
    cut = run("cut", part(1.0, 3, comparable=False))
    (found,) = series([cut, run("whole", part(0.5))], {1: "m"})
    assert (found.run_id, found.runs) == ("whole", 1)
    (found,) = series([cut], {1: "m"})
    assert (found.run_id, found.score.comparable) == ("cut", False)


def test_several_benchmarks_are_several_lines() -> None:
    pooled = {**part(0.5, 40), "pooled_over": 2, "benchmarks": {"a": part(1.0, 20), "b": part(0.0, 20)}}
    runs = [run("both", pooled, "s", "a", "b"), run("alone", part(0.8, 20), "s", "a")]
    found = {each.benchmarks: each for each in series(runs, {1: "m"})}
    assert set(found) == {"a", "b"}
    assert (found["a"].score.estimate, found["a"].runs) == (1.0, 2)
    assert (found["b"].score.estimate, found["b"].score.n) == (0.0, 20)


def test_what_an_older_version_stored_pooled_stays_apart_and_says_so() -> None:
    old = run("old", part(0.5, 40), None, "a", "b")
    (found,) = series([old], {1: "m"})
    assert (found.benchmarks, found.score.pooled_over) == ("a, b", 2)
