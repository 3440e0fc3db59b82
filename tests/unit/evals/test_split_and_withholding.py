"""Splitting, withholding, validating: what needs neither a database nor a sandbox."""

from __future__ import annotations

import json

import pytest

from orchestrator.evals.feedback import contradicts
from orchestrator.evals.training_data import MOST_LABELLED, missing, split, withheld
from orchestrator.traces.sample import sample_traces
from runner.contract.evals import TRACE_ID_MARK, Label
from runner.contract.rules.evals import problem_of
from runner.evals.trial import Subject


@pytest.mark.parametrize("good", [2, 3, 10, 500])
@pytest.mark.parametrize("bad", [2, 7, 3000])
def test_every_label_is_in_both_parts(good: int, bad: int) -> None:
    labelled = [(number, Label.POSITIVE if number < good else Label.NEGATIVE) for number in range(good + bad)]
    examples = split(labelled, seed=1)
    for label in Label:
        assert {each.held_out for each in examples if each.label is label} == {True, False}
    assert len(examples) <= max(MOST_LABELLED + 2, 4)
    assert examples == split(labelled[::-1], seed=1)
    assert examples == sorted(examples, key=lambda each: each.number)


def test_another_seed_holds_out_others() -> None:
    labelled = [(number, Label.POSITIVE if number % 2 else Label.NEGATIVE) for number in range(40)]
    assert split(labelled, 1) != split(labelled, 2)


def test_what_is_missing_is_said() -> None:
    assert missing({Label.POSITIVE: 1}) == {Label.POSITIVE: 1, Label.NEGATIVE: 2}
    assert missing({Label.POSITIVE: 2, Label.NEGATIVE: 5}) == {}


@pytest.mark.parametrize(
    ("passed", "rating", "against"),
    [
        (True, "negative", True),
        (False, "positive", True),
        (True, "positive", False),
        (None, "positive", False),
        (True, None, False),
    ],
)
def test_contradictions(passed: bool | None, rating: str | None, against: bool) -> None:
    assert contradicts(passed, rating) is against


def test_ids_and_labels_are_withheld_everywhere() -> None:
    data = {
        "input": "about trace-4711",
        "output": ["trace-4711"],
        "steps": [{"trace-4711": 1}],
        "metadata": {"Label": "good", "scores": [1], "trace": "trace-4711", "channel": "mail"},
    }
    seen = withheld(data, "trace-4711")
    assert "trace-4711" not in json.dumps(seen)
    assert seen["metadata"] == {"trace": TRACE_ID_MARK, "channel": "mail"}
    one, other = Subject(1, json.dumps(seen)).given("a"), Subject(1, json.dumps(seen)).given("b")
    assert one["id"] != other["id"]
    assert one["input"] == f"about {one['id']}"


def test_a_short_id_is_no_word_of_a_text() -> None:
    seen = withheld({"input": "I have 7 apples", "metadata": {"n": "7"}}, "7")
    assert seen["input"] == "I have 7 apples"
    assert seen["metadata"] == {"n": TRACE_ID_MARK}


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def evaluate(trace):\n    return {}", None),
        ("import re\nfrom urllib.parse import quote\ndef evaluate(trace, strict=False):\n    return {}", None),
        ("def evaluate(trace)\n    pass", "line 1"),
        ("import os\ndef evaluate(t): return {}", "imports os"),
        ("def evaluate(t):\n    import subprocess\n    return {}", "imports subprocess"),
        ("from . import x\ndef evaluate(t): return {}", "relative"),
        ("import urllib.request\ndef evaluate(t): return {}", "imports urllib.request"),
        ("def evaluate(t): return open('x')", "uses open"),
        ("def evaluate(t): return t.__class__", "__class__"),
        ("def judge(t): return {}", "no function evaluate"),
        ("def evaluate(): return {}", "one argument"),
        ("def evaluate(a, b): return {}", "one argument"),
        ("async def evaluate(t): return {}", "async"),
        ("def evaluate(t):\n    yield {}", "generator"),
        ("x" * 60_000, "characters"),
        ("(" * 5000, "not valid Python"),
    ],
)
def test_what_reading_tells(code: str, words: str | None) -> None:
    problem = problem_of(code)
    assert (problem is None) if words is None else (problem is not None and words in problem)


def test_sample_traces_are_half_good_and_always_the_same() -> None:
    rows = list(sample_traces(50, 1))
    assert rows == list(sample_traces(50, 1))
    assert sum(row["label"] == "positive" for row in rows) == 25
    assert len({row["id"] for row in rows}) == 50
