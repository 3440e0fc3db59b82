"""Figures as people type them, and back; variables."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.commands.words import figure_words, read_figure, read_variable
from runner.contract.commands import FigureRule


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a", {"name": "a"}),
        (" two words ", {"name": "two words"}),
        ("a:larger=x=(.+)", {"name": "a", "better": "larger", "pattern": "x=(.+)"}),
        ("a : larger", {"name": "a", "better": "larger"}),
        ("p[50]", {"name": "p[50]"}),
        ("took [s]=took: ([0-9.]+) s$", {"name": "took", "unit": "s", "pattern": "took: ([0-9.]+) s$"}),
        ("rate [1/s]:larger", {"name": "rate", "unit": "1/s", "better": "larger"}),
        ("mean=$.results[0].mean", {"name": "mean", "json_path": "results[0].mean"}),
        (r"=(?P<reads>\d+) reads", {"name": "", "pattern": r"(?P<reads>\d+) reads"}),
    ],
)
def test_what_is_meant(text: str, meant: dict[str, Any]) -> None:
    found = read_figure(text)
    assert found == {"better": "smaller", **meant}
    assert read_figure(figure_words(FigureRule(**found))) == found


@pytest.mark.parametrize("wrong", ["", "  ", ":larger", "a:worst", "a:b:larger", "a:worst=(.)"])
def test_what_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="is not NAME"):
        read_figure(wrong)


def test_variables() -> None:
    assert read_variable("A=b=c") == ("A", "b=c")
    assert read_variable("A=") == ("A", "")
    with pytest.raises(ValueError, match="is not NAME=VALUE"):
        read_variable("A")
