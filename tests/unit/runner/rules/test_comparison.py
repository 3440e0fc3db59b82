"""Comparing answers with targets."""

from __future__ import annotations

from typing import Any

import pytest

from runner.contract.rules.grading import By, Ignore, JudgeRule
from runner.rules.comparison import is_right

EVERYTHING = list(Ignore)


@pytest.mark.parametrize(
    ("rule", "answer", "target", "right"),
    [
        (JudgeRule(by=By.EXACT), " Paris ", "Paris", True),
        (JudgeRule(by=By.EXACT), "paris", "Paris", False),
        (JudgeRule(by=By.EXACT, ignore=[Ignore.CASE]), "PARIS", "Paris", True),
        (JudgeRule(by=By.EXACT, ignore=EVERYTHING), "The  city, of Light!", "city of light", True),
        (JudgeRule(by=By.ANY_OF), "b", ["a", "b"], True),
        (JudgeRule(by=By.ANY_OF), "c", ["a", "b"], False),
        (JudgeRule(by=By.CONTAINS, ignore=[Ignore.CASE]), "It is paris, I think", "Paris", True),
        (JudgeRule(by=By.REGEX, pattern="^a+$"), "aaa", "unused", True),
        (JudgeRule(by=By.REGEX), "abc", "b.", True),
        (JudgeRule(by=By.REGEX), "abc", "^b", False),
        (JudgeRule(by=By.NUMBER), "1,200.0", "1200", True),
        (JudgeRule(by=By.NUMBER), "$12", "12.00", True),
        (JudgeRule(by=By.NUMBER), "12.1", "12", False),
        (JudgeRule(by=By.NUMBER, tolerance=0.1), "12.1", "12", True),
        (JudgeRule(by=By.NUMBER, tolerance=0.01, relative=True), "101", "100", True),
        (JudgeRule(by=By.NUMBER, tolerance=0.01, relative=True), "102", "100", False),
        (JudgeRule(by=By.NUMBER), "1e999999999", "1", False),
        (JudgeRule(by=By.NUMBER), "nan", "nan", False),
        (JudgeRule(by=By.CHOICE), "(b)", "B", True),
        (JudgeRule(by=By.JSON), '{"b": [1.0], "a": 2}', {"a": 2, "b": [1]}, True),
        (JudgeRule(by=By.JSON), "true", 1, False),
        (JudgeRule(by=By.JSON), "not json", "not json", False),
    ],
)
def test_comparison(rule: JudgeRule, answer: str, target: Any, right: bool) -> None:
    assert is_right(rule, answer, target) is right
