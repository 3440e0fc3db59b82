"""Panels: the same seed gives the same problems, strata keep their shares, and the informative draw says what it took."""

from __future__ import annotations

from collections import Counter

import pytest

from orchestrator.datasets.errors import TooFewProblems
from orchestrator.datasets.packs.pack import Entry
from orchestrator.schedules.panel import Draw, draw_panel


def entries(count: int = 40) -> list[Entry]:
    return [Entry(f"p{number}", difficulty=("easy", "medium", "hard", "hard")[number % 4]) for number in range(count)]


def test_the_same_seed_gives_the_same_problems() -> None:
    one = draw_panel("b", entries(), 12, 7)
    assert one == draw_panel("b", entries(), 12, 7)
    assert one.problem_ids != draw_panel("b", entries(), 12, 8).problem_ids
    strata = Counter(entry.difficulty for entry in entries() if entry.id in set(one.problem_ids))
    assert strata == {"easy": 3, "medium": 3, "hard": 6}
    assert one.how == "b: 12 of 40 problems, stratified, seed 7."


def test_informative_takes_what_varies_first() -> None:
    history = {f"p{number}": (5, 5) for number in range(20)}
    history |= {f"p{number}": (5, 2) for number in range(20, 26)}
    history |= {"p26": (2, 2)}
    drawn = draw_panel("b", entries(), 12, 1, Draw.INFORMATIVE, history)
    assert len(set(drawn.problem_ids)) == 12
    assert {f"p{number}" for number in range(20, 26)} <= set(drawn.problem_ids)
    assert not {f"p{number}" for number in range(20)} & set(drawn.problem_ids)
    assert "6 of 6 solved sometimes, 6 of 14 not known yet, 0 of 20 always or never solved" in drawn.how
    everything = draw_panel("b", entries(), 40, 1, Draw.INFORMATIVE, history)
    assert len(set(everything.problem_ids)) == 40


def test_without_history_everything_is_unknown() -> None:
    assert "12 of 40 not known yet" in draw_panel("b", entries(), 12, 1, Draw.INFORMATIVE).how


@pytest.mark.parametrize("draw", Draw)
def test_more_than_there_is(draw: Draw) -> None:
    with pytest.raises(TooFewProblems):
        draw_panel("b", entries(), 41, 1, draw)
