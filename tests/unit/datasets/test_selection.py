"""The choice of problems: seeded, stratified, stable, and honest about what is not there."""

from collections import Counter
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.datasets.errors import TooFewProblems, UnknownProblem
from orchestrator.datasets.packs.pack import Entry
from orchestrator.datasets.packs.selection import Selection, choose

ENTRIES = [
    Entry(f"p{i}", ("easy", "medium", "medium", "hard")[i % 4], f"2024-{1 + i % 12:02}-15", ("leetcode", "atcoder")[i % 2])
    for i in range(200)
]
DIFFICULTY = {entry.id: entry.difficulty for entry in ENTRIES}


def test_everything_in_pack_order_without_conditions() -> None:
    assert choose("b", ENTRIES, Selection()) == [entry.id for entry in ENTRIES]


def test_the_same_seed_gives_the_same_problems_and_another_seed_others() -> None:
    first = choose("b", ENTRIES, Selection(sample_size=40, seed=1))
    assert first == choose("b", ENTRIES, Selection(sample_size=40, seed=1))
    assert set(first) != set(choose("b", ENTRIES, Selection(sample_size=40, seed=2)))


def test_the_choice_is_pinned_across_versions() -> None:
    assert choose("b", ENTRIES, Selection(sample_size=5, seed=7)) == ["p186", "p193", "p163", "p153", "p64"]


def test_a_sample_has_the_shares_of_the_pack() -> None:
    chosen = choose("b", ENTRIES, Selection(sample_size=40, seed=3))
    assert Counter(DIFFICULTY[problem_id] for problem_id in chosen) == {"easy": 10, "medium": 20, "hard": 10}


def test_a_larger_sample_contains_the_smaller_one_per_seed() -> None:
    assert set(choose("b", ENTRIES, Selection(sample_size=20, seed=5))) < set(
        choose("b", ENTRIES, Selection(sample_size=100, seed=5))
    )


def test_a_new_problem_does_not_reshuffle_the_others() -> None:
    before = set(choose("b", ENTRIES, Selection(sample_size=40)))
    after = set(choose("b", [*ENTRIES, Entry("new", "easy")], Selection(sample_size=40)))
    assert len(before - after) <= 2


@given(st.integers(1, 200), st.integers(0, 10**9))
def test_a_sample_has_the_size_asked_and_no_repeats(size: int, seed: int) -> None:
    chosen = choose("b", ENTRIES, Selection(sample_size=size, seed=seed))
    assert len(chosen) == len(set(chosen)) == size


@pytest.mark.parametrize(("pct", "expected"), [(100, 200), (10, 20), (0.1, 1), (33.3, 67)])
def test_percentages(pct: float, expected: int) -> None:
    assert len(choose("b", ENTRIES, Selection(subset_pct=pct))) == expected


def test_conditions_are_combined_and_dates_are_inclusive() -> None:
    wanted = Selection(after=date(2024, 3, 15), before=date(2024, 4, 15), difficulty="medium", platform=["leetcode"])
    chosen = choose("b", ENTRIES, wanted)
    assert chosen
    for entry in ENTRIES:
        fits = entry.date in ("2024-03-15", "2024-04-15") and entry.difficulty == "medium" and entry.platform == "leetcode"
        assert fits == (entry.id in chosen)


def test_ids_come_in_the_order_asked_and_once() -> None:
    assert choose("b", ENTRIES, Selection(ids=["p9", "p3", "p9"])) == ["p9", "p3"]


def test_unknown_ids_are_named() -> None:
    with pytest.raises(UnknownProblem, match="no problem zz"):
        choose("b", ENTRIES, Selection(ids=["p1", "zz"]))


def test_a_sample_too_large_says_how_many_there_are() -> None:
    with pytest.raises(TooFewProblems, match="only 50 match") as caught:
        choose("b", ENTRIES, Selection(sample_size=60, difficulty="easy"))
    assert caught.value.available == 50


def test_nothing_that_matches_is_an_error_too() -> None:
    with pytest.raises(TooFewProblems, match="No problem"):
        choose("b", ENTRIES, Selection(after=date(2030, 1, 1)))


def test_flagged_problems_can_be_left_out_by_id_and_by_leetcode_title() -> None:
    entries = [
        Entry("abc337_e", platform="atcoder"),
        Entry("3013", platform="leetcode", title="find-the-peaks"),
        Entry("find-the-peaks", platform="own"),
        Entry("ok", platform="atcoder", title="find-the-peaks"),
    ]
    assert choose("b", entries, Selection(exclude_flagged=True)) == ["ok"]
    assert len(choose("b", entries, Selection())) == 4


def test_categories_are_strata_where_there_are_no_difficulties() -> None:
    entries = [Entry(f"q{i}", category=("law", "math")[i % 2]) for i in range(100)]
    chosen = choose("b", entries, Selection(sample_size=10))
    assert sum(int(problem_id[1:]) % 2 for problem_id in chosen) == 5
