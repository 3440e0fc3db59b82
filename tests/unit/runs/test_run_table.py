"""The address of the list of runs: read, written again without what is usual, and with one thing changed."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest

from orchestrator.runs.pages.bulk import sentence_of
from orchestrator.runs.views.run_table import USUAL, TableState, same_address


def state(query: str) -> TableState:
    return TableState.of(parse_qsl(query))


def test_the_usual_list_has_a_bare_address() -> None:
    bare = TableState()
    assert bare.query() == ""
    assert state("q=&sort=-created&" + "&".join(f"col={name}" for name in USUAL)) == bare


def test_an_address_is_read_and_written_again() -> None:
    query = "status=failed&status=running&tag=a&q=two+words&dead=1&sort=score&col=status&col=author&density=compact&page=3"
    assert state(query).query() == query


@pytest.mark.parametrize("query", ["page=0", "page=-1", "page=abc", "page=99999999999", "sort=;drop", "unknown=1", "page=²"])
def test_what_is_not_known_is_left_out(query: str) -> None:
    assert state(query) == TableState()


def test_a_column_sorts_the_other_way_round_when_chosen_again() -> None:
    assert state("page=2").sorted_by("score") == "sort=-score"
    assert state("sort=-score").sorted_by("score") == "sort=score"
    assert state("sort=score").sorted_by("created") == ""
    assert state("").sorted_by("model") == "sort=model"


def test_each_chip_leads_to_the_list_without_it() -> None:
    chips = dict(state("status=failed&status=running&model=7&q=x&page=2").chips({"7": "atlas"}))
    assert chips["model: atlas"] == "status=failed&status=running&q=x"
    assert chips["status: failed"] == "status=running&model=7&q=x"
    assert chips["search: x"] == "status=failed&status=running&model=7"


def test_an_address_from_a_form_cannot_lead_elsewhere() -> None:
    assert same_address("status=failed&done=cancel.1.0&next=//evil.example") == "status=failed"


@pytest.mark.parametrize(
    ("done", "sentence"),
    [
        ("cancel.2.0", "2 runs cancelled."),
        ("retry.1.3", "1 run queued again. 3 left as it was: it has not ended, or has every result already."),
        ("none", "No runs were selected."),
        ("<b>.1.1", None),
        ("cancel.x.1", None),
        ("", None),
    ],
)
def test_only_known_words_are_repeated(done: str, sentence: str | None) -> None:
    assert sentence_of(done) == sentence
