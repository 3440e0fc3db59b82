"""Statistics of a dataset, and records cut to a readable size."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.datasets.packs.pack import Entry
from orchestrator.datasets.preview import MAX_ITEMS, MAX_TEXT, shortened, spread, statistics


def test_problems_are_counted_by_kind_the_most_frequent_first() -> None:
    entries = [Entry("a", "hard", "2024-01-31", category="law"), Entry("b", "easy", "2024-01-01"), Entry("c", "easy")]
    counts = statistics(entries)
    assert list(counts.difficulties.items()) == [("easy", 2), ("hard", 1)]
    assert (counts.categories, counts.platforms, counts.dates) == ({"law": 1}, {}, {"2024-01": 2})


def test_many_months_are_counted_by_year() -> None:
    entries = [
        Entry(f"{year}-{month}", date=f"{year}-{month:02}-01") for year in (2022, 2020, 2021, 2023) for month in (1, 2)
    ]
    assert len(statistics(entries).dates) == 8
    entries += [Entry(f"x{n}", date=f"{1980 + n}-05-01") for n in range(40)]
    assert list(statistics(entries).dates)[:2] == ["1980", "1981"]


@pytest.mark.parametrize(
    ("value", "cut"),
    [
        ("x" * MAX_TEXT, "x" * MAX_TEXT),
        ("x" * (MAX_TEXT + 7), "x" * MAX_TEXT + " ... (7 more characters)"),
        (list(range(MAX_ITEMS + 3)), [*range(MAX_ITEMS), "... (3 more)"]),
        ({"a": [{"b": "x" * (MAX_TEXT + 1)}]}, {"a": [{"b": "x" * MAX_TEXT + " ... (1 more characters)"}]}),
        ([[[[[[[1, 2]]]]]]], [[[[[["... (2 more values)"]]]]]]),
        ({"n": None, "e": []}, {"n": None, "e": []}),
    ],
    ids=["short", "long text", "long list", "inside", "deep", "empty"],
)
def test_records_are_cut(value: Any, cut: Any) -> None:
    assert shortened(value) == cut


@pytest.mark.parametrize(("count", "ids"), [(0, ""), (1, "a"), (2, "ae"), (4, "aceg"), (8, "abcdefgh"), (20, "abcdefgh")])
def test_a_preview_is_spread_over_the_pack(count: int, ids: str) -> None:
    assert spread(list("abcdefgh"), count) == list(ids)
