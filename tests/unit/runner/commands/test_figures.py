from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.commands.capture import Capture, shortened
from runner.commands.figures import figures_in
from runner.contract.commands import Better, FigureRule


def read(output: str, *rules: dict[str, Any]) -> tuple[dict[str, float], list[str]]:
    figures, missing = figures_in(output, [FigureRule(**rule) for rule in rules])
    return {figure.name: figure.value for figure in figures}, missing


LINES = """noise
{"name": "a", "value": 1.5, "unit": "s"}
{"name": "a", "value": 2.5}
{"name": "b", "value": 3, "better": "larger"}
"""


def test_json_lines_without_rules() -> None:
    figures, missing = figures_in(LINES, [])
    assert [(f.name, f.value, f.unit, f.better) for f in figures] == [
        ("a", 2.0, "s", Better.SMALLER),
        ("b", 3.0, "", Better.LARGER),
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("output", "rule", "expected"),
    [
        (LINES, {"name": "b"}, {"b": 3.0}),
        ('{"score": 36.5, "n": 4}\n{"score": 37.5}', {"name": "score"}, {"score": 37.0}),
        ('{"name": "score", "value": 1, "score": 9}\n{"n": 1}', {"name": "score"}, {"score": 1.0}),
        ('{"r": [{"mean": 7}, {"mean": 8}]}', {"name": "m", "json_path": "$.r[1].mean"}, {"m": 8.0}),
        ('{\n "r": {\n  "mean": "1,234.5"}}', {"name": "m", "json_path": "r.mean"}, {"m": 1234.5}),
        ("best: 12.5 usec\n", {"name": "t", "pattern": r"best: (?P<value>[\d.]+)"}, {"t": 12.5}),
        ("x 1e3 y\n", {"name": "t", "pattern": r"x (\S+)"}, {"t": 1000.0}),
        ("min 1 max 2\nmin 3 max 4\n", {"pattern": r"^min (?P<low>\d+) max (?P<high>\d+)$"}, {"low": 2.0, "high": 3.0}),
        ("\x1b[32m10\x1b[0m ops\r\n", {"name": "ops", "pattern": r"^(\d+) ops$"}, {"ops": 10.0}),
    ],
    ids=str,
)
def test_where_figures_are_found(output: str, rule: dict[str, Any], expected: dict[str, float]) -> None:
    assert read(output, rule) == (expected, [])


@pytest.mark.parametrize(
    "value",
    ["true", "null", '"x"', "1e999", "-1.7e308", "NaN", "[1]", '{"a": 1}', '"' + "9" * 5000 + '"'],
    ids=lambda v: str(v)[:8],
)
def test_what_is_no_number_is_no_figure(value: str) -> None:
    assert read(f'{{"name": "a", "value": {value}}}', {"name": "a"}) == ({}, ["a"])


def test_names_and_units_can_be_stored() -> None:
    figures, _ = figures_in('{"name": "a\\ud800", "value": 1}\n{"name": "b", "value": 2, "unit": "\\u0000s"}', [])
    assert [(figure.name, figure.unit) for figure in figures] == [("a?", ""), ("b", "\ufffds")]


def test_a_flood_of_names_is_cut() -> None:
    flood = "\n".join(json.dumps({"name": f"n{i}" * 100, "value": i}) for i in range(1000))
    figures, _ = figures_in(flood, [])
    assert len(figures) == 200
    assert max(len(figure.name) for figure in figures) == 100


def test_deep_json_does_no_harm() -> None:
    assert read("[" * 100_000, {"name": "a", "json_path": "a"}) == ({}, ["a"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=20))
def test_capture_keeps_the_beginning_and_the_end(pieces: list[bytes]) -> None:
    capture = Capture(head_bytes=16, tail_bytes=8)
    for piece in pieces:
        capture.add(piece)
    whole = b"".join(pieces)
    text = capture.text()
    assert capture.total == len(whole)
    if len(whole) <= 24:
        assert text == whole.decode("utf-8", "replace")
    else:
        assert text.startswith(whole[:16].decode("utf-8", "replace"))
        assert text.endswith(whole[-8:].decode("utf-8", "replace"))
        assert f"{len(whole) - 24} bytes were left out" in text


def test_shortened_says_what_is_missing() -> None:
    assert shortened("abc", 10) == "abc"
    assert "960 characters were left out" in shortened("x" * 1000, 40)
