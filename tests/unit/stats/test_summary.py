"""Scores: what counts, what is left out and said, and the groups."""

import pytest

from orchestrator.stats.intervals import wilson
from orchestrator.stats.summary import ItemScore, around_cut_off, summarise
from runner.contract.events import Outcome

P, W, T = Outcome.PASSED, Outcome.WRONG_ANSWER, Outcome.TIME_LIMIT


def items(*outcomes: Outcome, **facts: str) -> list[ItemScore]:
    return [ItemScore(f"p{i}", 0, outcome, **facts) for i, outcome in enumerate(outcomes)]  # type: ignore[arg-type]


def test_plain_items_have_wilsons_interval() -> None:
    summary = summarise(items(*[P] * 7, W, T, Outcome.NO_ANSWER))
    expected = wilson(7, 10)
    assert (summary.estimate, summary.n, summary.passed, summary.problems) == (0.7, 10, 7, 10)
    assert (summary.low, summary.high) == pytest.approx((expected.low, expected.high))
    assert summary.outcomes == {"no_answer": 1, "passed": 7, "time_limit": 1, "wrong_answer": 1}
    assert summary.pass_at_k == {1: pytest.approx(0.7)}


@pytest.mark.parametrize("outcome", [Outcome.TRUNCATED, Outcome.REFUSED, Outcome.NO_ANSWER, Outcome.MEMORY_LIMIT])
def test_whatever_is_the_models_fault_counts_as_a_failure(outcome: Outcome) -> None:
    assert summarise(items(P, outcome)).estimate == 0.5


@pytest.mark.parametrize("outcome", [Outcome.PROVIDER_ERROR, Outcome.INFRA_ERROR])
def test_whatever_is_not_is_left_out_and_shown(outcome: Outcome) -> None:
    summary = summarise(items(P, W, outcome, outcome))
    assert (summary.estimate, summary.n) == (0.5, 2)
    assert (summary.estimate_all, summary.n_all) == (0.25, 4)
    assert summary.comparable is False


@pytest.mark.parametrize(("errors", "comparable"), [(0, True), (2, True), (3, False)])
def test_comparable_up_to_two_per_cent(errors: int, comparable: bool) -> None:
    assert summarise(items(*[P] * (100 - errors), *[Outcome.INFRA_ERROR] * errors)).comparable is comparable


def test_no_items_is_a_summary_too() -> None:
    summary = summarise([])
    assert (summary.estimate, summary.low, summary.high, summary.n, summary.pass_at_k) == (0, 0, 1, 0, {})


def test_several_samples_give_pass_at_k_and_a_clustered_error() -> None:
    many = [ItemScore(f"p{i}", k, P if i < 5 else W) for i in range(10) for k in range(4)]
    summary = summarise(many)
    alone = wilson(5, 10)
    assert (summary.n, summary.problems) == (40, 10)
    assert summary.pass_at_k == {1: 0.5, 2: 0.5, 4: 0.5}
    assert (summary.low, summary.high) == pytest.approx((alone.low, alone.high))


def test_groups() -> None:
    scored = [
        ItemScore("a", 0, P, "easy", "atcoder", "", "2024-01-05"),
        ItemScore("b", 0, W, "easy", "leetcode", "", "2024-01-20"),
        ItemScore("c", 0, W, "hard", "leetcode", "", "2024-02-01"),
        ItemScore("d", 0, Outcome.INFRA_ERROR, "hard", "leetcode", "", "2024-02-01"),
    ]
    summary = summarise(scored)
    assert {name: (score.estimate, score.n) for name, score in summary.by_difficulty.items()} == {
        "easy": (0.5, 2),
        "hard": (0, 1),
    }
    assert {name: score.n for name, score in summary.by_platform.items()} == {"atcoder": 1, "leetcode": 2}
    assert list(summary.by_month) == ["2024-01", "2024-02"]
    assert summary.by_category == {}


def test_both_ways_of_judging_and_their_flips() -> None:
    scored = [ItemScore("a", 0, P, parity_outcome=P), ItemScore("b", 0, P, parity_outcome=W), ItemScore("c", 0, W)]
    summary = summarise(scored)
    assert summary.parity is not None
    assert (summary.parity.estimate, summary.parity.n, summary.flips) == (0.5, 2, 1)
    assert summarise([ItemScore("c", 0, W)]).parity is None


def test_an_answer_with_nothing_to_judge_fails_in_both_ways() -> None:
    """Otherwise the official score would be taken of fewer answers, and be better than the published one can be."""
    unjudged = [ItemScore(str(place), 0, each) for place, each in enumerate((Outcome.TRUNCATED, Outcome.NO_ANSWER))]
    summary = summarise([ItemScore("a", 0, P, parity_outcome=P), *unjudged, ItemScore("d", 0, Outcome.PROVIDER_ERROR)])
    assert summary.parity is not None
    assert (summary.parity.passed, summary.parity.n, summary.n, summary.flips) == (1, 3, 3, 0)
    assert summarise(unjudged).parity is None


def test_around_the_training_cut_off() -> None:
    old = [ItemScore(f"o{i}", 0, P, date="2023-06-01") for i in range(30)]
    new = [ItemScore(f"n{i}", 0, P if i < 10 else W, date="2024-06-01") for i in range(30)]
    found = around_cut_off([*old, *new], "2024-01-01")
    assert found is not None
    assert (found.before.estimate, round(found.after.estimate, 3)) == (1.0, 0.333)
    assert found.difference.low > 0.4
    assert around_cut_off(old, "2024-01-01") is None
