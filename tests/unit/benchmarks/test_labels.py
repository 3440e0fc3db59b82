"""Labelled answers of a benchmark's file."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.benchmarks.labels import MAX_LABELLED, labelled_answers
from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.formats.rows import LeftOut, Row


def rows(*values: dict[str, Any]) -> list[Row | LeftOut]:
    return [Row(f"record {number}", number, value) for number, value in enumerate(values, start=1)]


@pytest.mark.parametrize(("word", "right"), [(True, True), ("yes", True), (1, True), ("Wrong", False), ("0", False)])
def test_words_for_right_and_wrong(word: object, right: bool) -> None:
    assert labelled_answers(rows({"id": 1, "answer": "A", "right": word}), ["1"]) == (("1", "A", right),)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"id": "1", "answer": "A"}, "has no right"),
        ({"answer": "A", "right": True}, "has no id"),
        ({"id": "2", "answer": "A", "right": True}, "which is not there"),
        ({"id": "1", "answer": 7, "right": True}, "is not a text"),
        ({"id": "1", "answer": "x" * 100_001, "right": True}, "at most 100000"),
        ({"id": "1", "answer": "A", "right": "perhaps"}, "right: true"),
    ],
)
def test_a_mistake_is_named(value: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadSource, match=sentence):
        labelled_answers(rows(value), ["1"])


def test_too_many_and_unreadable_ones_are_refused() -> None:
    with pytest.raises(BadSource, match="more than 2000"):
        labelled_answers(rows(*[{"id": "1", "answer": "A", "right": True}] * (MAX_LABELLED + 1)), ["1"])
    with pytest.raises(BadSource, match="not JSON"):
        labelled_answers([LeftOut("line 1", "not JSON")], ["1"])
