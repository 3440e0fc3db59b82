"""The score of a run from its verdicts."""

from __future__ import annotations

import pytest

from orchestrator.datasets.packs.pack import Entry
from orchestrator.runs.reports.scores import ScoredItem, flags_of, score_detail, score_of, scores_by_benchmark


def verdict(
    problem: str, outcome: str, sample: int = 0, parity: str | None = None, score: float | None = None
) -> ScoredItem:
    return ("b", problem, sample, outcome, parity, score)


def test_nothing_has_no_score() -> None:
    assert score_of([]) is None


def test_what_is_not_the_models_fault_is_left_out_and_said() -> None:
    score = score_of([verdict("1", "passed"), verdict("2", "wrong_answer"), verdict("3", "infra_error")])
    assert score is not None
    assert (score["estimate"], score["n"], score["passed"], score["n_all"]) == (0.5, 2, 1, 3)
    assert score["estimate_all"] == pytest.approx(1 / 3)
    assert not score["comparable"]


def test_only_such_items_give_no_estimate() -> None:
    score = score_of([verdict("1", "provider_error")])
    assert score is not None
    assert (score["estimate"], score["low"], score["high"], score["n"]) == (None, None, None, 0)


def test_samples_of_a_problem_are_a_cluster() -> None:
    ten = [
        verdict(str(problem), "passed" if problem % 2 else "wrong_answer", sample)
        for problem in range(10)
        for sample in range(10)
    ]
    hundred = [verdict(str(problem), "passed" if problem % 2 else "wrong_answer") for problem in range(100)]
    clustered, independent = score_of(ten), score_of(hundred)
    assert clustered is not None
    assert independent is not None
    assert clustered["estimate"] == independent["estimate"] == 0.5
    assert clustered["high"] - clustered["low"] > 2 * (independent["high"] - independent["low"])
    assert clustered["pass_at_k"]["10"] == 0.5
    assert (clustered["problems"], clustered["n"]) == (10, 100)


def test_both_ways_of_judging_and_their_differences() -> None:
    verdicts = [verdict("1", "passed", parity="runtime_error"), verdict("2", "passed", parity="passed")]
    score = score_of(verdicts)
    assert score is not None
    assert (score["estimate"], score["parity"]["estimate"], score["flips"]) == (1.0, 0.5, 1)
    detail = score_detail(verdicts, lambda name: {})
    assert [each["problem_id"] for each in detail["b"]["flipped"]] == ["1"]


def test_groups_come_from_what_is_known_of_the_problems() -> None:
    known = {
        "1": Entry("1", "easy", "2024-01-05", "atcoder"),
        "2": Entry("2", "hard", "2024-03-05", "leetcode"),
    }
    verdicts = [verdict("1", "passed"), verdict("2", "wrong_answer"), verdict("3", "passed")]
    detail = score_detail(verdicts, lambda name: known, "2024-02-01")["b"]
    assert {name: score["estimate"] for name, score in detail["by_difficulty"].items()} == {"easy": 1.0, "hard": 0.0}
    assert set(detail["by_month"]) == {"2024-01", "2024-03"}
    assert set(detail["by_platform"]) == {"atcoder", "leetcode"}
    assert detail["around_cut_off"]["before"]["estimate"] == 1.0
    assert detail["n"] == 3


def test_several_benchmarks_are_pooled_and_each_has_its_own_score() -> None:
    verdicts = [("a", f"p{n}", 0, "passed", None, None) for n in range(4)]
    verdicts += [("b", f"p{n}", 0, "wrong_answer", None, None) for n in range(12)]
    score = score_of(verdicts)
    assert score is not None
    assert (score["pooled_over"], score["estimate"], score["n"]) == (2, 0.25, 16)
    parts = scores_by_benchmark(score, ["a", "b"])
    assert {name: (part["estimate"], part["n"]) for name, part in parts.items()} == {"a": (1.0, 4), "b": (0.0, 12)}
    single = score_of(verdicts[:4])
    assert single is not None
    assert single["pooled_over"] == 1
    assert scores_by_benchmark(single, ["a"])["a"]["estimate"] == 1.0
    assert scores_by_benchmark({"estimate": 0.5, "n": 2}, ["a", "b"]) == {}, "stored by an older version"


@pytest.mark.parametrize(
    ("left_out", "of", "done", "flags"),
    [
        (0, 100, 100, []),
        (2, 100, 100, []),
        (3, 100, 100, ["excluded_over_limit"]),
        (0, 100, 40, ["cut_short"]),
        (1, 10, 5, ["excluded_over_limit", "cut_short"]),
    ],
)
def test_what_must_be_said_with_a_score(left_out: int, of: int, done: int, flags: list[str]) -> None:
    assert flags_of({"n": of - left_out, "n_all": of}, done, 100 if of == 100 else 10) == flags


def test_values_between_0_and_1_give_a_mean() -> None:
    verdicts = [
        verdict("1", "passed", score=1.0),
        verdict("2", "wrong_answer", score=0.25),
        verdict("3", "passed"),  # pass or fail counts 1
        verdict("4", "no_answer"),
        verdict("5", "infra_error"),
    ]
    score = score_of(verdicts)
    assert score is not None
    assert (score["metric"], score["estimate"], score["passed"], score["n"]) == ("mean", 2.25 / 4, 2, 4)
    assert score["estimate_all"] == 2.25 / 5
    assert 0 < score["low"] < score["estimate"] < score["high"] < 1
    known = {"1": Entry("1", "easy"), "2": Entry("2", "hard")}
    detail = score_detail(verdicts, lambda name: known)["b"]
    assert {name: (part["metric"], part["estimate"]) for name, part in detail["by_difficulty"].items()} == {
        "easy": ("mean", 1.0),
        "hard": ("mean", 0.25),
    }


def test_values_of_0_and_1_are_like_pass_and_fail() -> None:
    plain = [verdict("1", "passed"), verdict("2", "wrong_answer"), verdict("3", "passed")]
    scored = [verdict("1", "passed", score=1.0), verdict("2", "wrong_answer", score=0.0), verdict("3", "passed", score=1.0)]
    assert score_of(scored) == score_of(plain)
    assert "metric" not in (score_of(plain) or {})


def test_a_benchmark_may_call_a_value_passed() -> None:
    score = score_of([verdict("1", "passed", score=0.8), verdict("2", "wrong_answer", score=0.4)])
    assert score is not None
    assert (score["passed"], score["estimate"]) == (1, pytest.approx(0.6))
