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


def sized(run_id: str, model: int, share: float, problems: int, *, sample: str | None = None) -> ScoredRun:
    samples = {"sample": {"id": sample or f"s{problems}", "pack_digest": "d", "problems": problems, "prompt_version": "v"}}
    return ScoredRun(run_id, model, ("sample",), {**part(share, problems), "samples": samples}, problems, 0.0, START, START)


def test_a_small_run_neither_displaces_a_large_one_nor_bends_its_trend() -> None:
    runs = [sized("quick", 1, 1.0, 8), sized("new", 1, 0.5, 90), sized("other", 2, 0.6, 90), sized("old", 1, 0.4, 90)]
    found = {line.model: line for line in series(runs, {1: "m", 2: "n"})}
    assert (found["m"].run_id, found["m"].problems, found["m"].runs, found["m"].common) == ("new", 90, 2, True)
    assert found["n"].common


def test_many_small_runs_of_many_models_do_not_displace_a_large_one_of_two() -> None:
    small = [sized(f"s{model}", model, 1.0, 8) for model in range(1, 40)]
    large = [sized("a", 1, 0.5, 90), sized("b", 2, 0.6, 90)]
    found = {line.model_id: line for line in series([*small, *large], {model: f"m{model}" for model in range(1, 40)})}
    assert (found[1].run_id, found[2].run_id) == ("a", "b")
    assert (found[3].problems, found[3].common) == (8, False), "it says that it is of other problems"


def test_a_set_that_most_models_have_wins_over_one_slightly_larger() -> None:
    runs = [sized(f"r{model}", model, 0.5, 90) for model in range(1, 6)]
    found = series([*runs, sized("x", 1, 0.5, 100), sized("y", 2, 0.5, 100)], {model: f"m{model}" for model in range(1, 6)})
    assert {line.problems for line in found} == {90}


def test_a_small_set_in_common_does_not_displace_the_large_one_of_one_model() -> None:
    runs = [sized("quick", 1, 1.0, 8), sized("large", 1, 0.5, 90), sized("only", 2, 0.6, 8)]
    found = {line.model: (line.run_id, line.common) for line in series(runs, {1: "m", 2: "n"})}
    assert found == {"m": ("large", True), "n": ("only", False)}
