"""Every place on a leaderboard is of the same problems, and who has not been measured on them has none."""

from __future__ import annotations

from orchestrator.leaderboard.samples import BoardSample, Candidate, board_samples, unranked
from orchestrator.runs.reports.scores import sample_id, samples_of
from runner.contract.run_spec import BenchmarkSpec

ALL = frozenset(f"p{number:02}" for number in range(36))
FEW = frozenset(sorted(ALL)[:3])
HALF = frozenset(sorted(ALL)[:18])
A, B, C = 1, 2, 3


def best(*candidates: Candidate, window: frozenset[str] = ALL) -> BoardSample:
    return board_samples(candidates, window, "d")[0]


def test_a_quick_run_does_not_take_the_place_of_a_whole_one() -> None:
    board = best(Candidate(A, "a-few", FEW), Candidate(A, "a-all", ALL), Candidate(B, "b-all", ALL))
    assert (board.problems, board.runs) == (ALL, {A: "a-all", B: "b-all"})


def test_a_model_that_was_measured_on_less_has_no_place() -> None:
    candidates = [Candidate(C, "c-few", FEW), Candidate(A, "a", ALL), Candidate(B, "b", ALL)]
    board = best(*candidates)
    assert set(board.runs) == {A, B}
    (rest,) = unranked(candidates, board)
    assert (rest.model_id, rest.run_id, rest.problems) == (C, "c-few", 3)
    assert rest.why == "no comparable run of it has more than 3 of the 36 problems"


def test_a_whole_run_counts_for_a_part_but_not_the_other_way_round() -> None:
    whole, part = board_samples([Candidate(A, "a", ALL), Candidate(B, "b", HALF)], ALL, "d")[::-1]
    assert (part.problems, part.runs) == (HALF, {A: "a", B: "b"}), "one comparison is better than none"
    assert (whole.problems, whole.runs) == (ALL, {A: "a"})


def test_the_newest_run_with_all_the_problems_counts() -> None:
    assert best(Candidate(A, "new", ALL), Candidate(A, "old", ALL)).runs == {A: "new"}


def test_other_prompts_are_another_sample() -> None:
    candidates = [Candidate(A, "a", ALL, "v2"), Candidate(B, "b", ALL, "v1"), Candidate(C, "c", ALL, "v1")]
    board = best(*candidates)
    assert (board.prompt_version, set(board.runs)) == ("v1", {B, C})
    (rest,) = unranked(candidates, board)
    assert rest.why == "its prompts are of version v2, those of the board of v1"


def test_what_is_not_comparable_has_no_place_and_says_why() -> None:
    candidates = [Candidate(A, "a", ALL, why_not="its run ended before its last item"), Candidate(B, "b", ALL)]
    assert best(*candidates).runs == {B: "b"}
    assert [each.why for each in unranked(candidates, best(*candidates))] == ["its run ended before its last item"]


def test_a_window_narrows_every_sample() -> None:
    board = best(Candidate(A, "a", ALL), Candidate(B, "b", HALF), window=HALF)
    assert (board.problems, set(board.runs)) == (HALF, {A, B})
    assert board_samples([Candidate(A, "a", ALL)], frozenset(), "d") == []


def test_the_identity_of_a_sample() -> None:
    assert sample_id("d", ["a", "b"], "v") == sample_id("d", ["b", "a", "a"], "v")
    others = [sample_id("e", ["a", "b"], "v"), sample_id("d", ["a"], "v"), sample_id("d", ["a", "b"], "w")]
    assert len({sample_id("d", ["a", "b"], "v"), *others}) == 4
    parts = [
        BenchmarkSpec(name="one", adapter="x", pack_digest="d", problem_ids=["a", "b"]),
        BenchmarkSpec(name="two", adapter="x", pack_digest="e", problem_ids=["c"]),
    ]
    found = samples_of(parts, {"one": "v"})
    assert found["one"] == {"id": sample_id("d", ["a", "b"], "v"), "pack_digest": "d", "problems": 2, "prompt_version": "v"}
    assert found["two"]["prompt_version"] == ""


def test_a_small_sample_of_many_models_does_not_displace_a_large_one_of_two() -> None:
    large, small = frozenset(f"p{number}" for number in range(90)), frozenset(f"p{number}" for number in range(8))
    candidates = [Candidate(model, f"s{model}", small) for model in range(3, 30)]
    found = board_samples([*candidates, Candidate(1, "a", large), Candidate(2, "b", large)], large, "d")
    assert [len(sample.problems) for sample in found] == [90, 8]
