"""Compares an answer with a record's target, by the rules of a definition. Pure."""

import json
import re
import string
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from runner.contract.numbers import as_decimal
from runner.contract.rules.grading import By, Ignore, JudgeRule
from runner.contract.rules.patterns import search

ARTICLES = re.compile(r"\b(?:a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def is_right(rule: JudgeRule, answer: str, target: Any) -> bool:
    """Whether the answer is right. What is judged in the sandbox is not judged here."""
    match rule.by:
        case By.EXACT | By.ANY_OF:
            answer = normalised(answer, rule.ignore)
            return any(answer == normalised(wanted, rule.ignore) for wanted in texts(target))
        case By.CONTAINS:
            answer = normalised(answer, rule.ignore)
            return any(normalised(wanted, rule.ignore) in answer for wanted in texts(target))
        case By.REGEX:
            patterns = [rule.pattern] if rule.pattern is not None else texts(target)
            return any(search(pattern, answer) for pattern in patterns)
        case By.NUMBER:
            return any(_near(rule, answer, wanted) for wanted in texts(target))
        case By.CHOICE:
            return answer.strip().strip("().").upper() == str(target)
        case By.JSON:
            return _same_json(answer, target)
        case _:
            raise ValueError(f"{rule.by} judges elsewhere: in the sandbox, or by a model")


def texts(target: Any) -> Sequence[str]:
    """The accepted answers as texts."""
    values = target if isinstance(target, list) else [target]
    return [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]


def normalised(text: str, ignore: Sequence[Ignore]) -> str:
    """Drops what does not count, in a fixed order: case, punctuation, articles, white space."""
    text = text.strip()
    if Ignore.CASE in ignore:
        text = text.casefold()
    if Ignore.PUNCTUATION in ignore:
        text = text.translate(NO_PUNCTUATION)
    if Ignore.ARTICLES in ignore:
        text = ARTICLES.sub(" ", text)
    if Ignore.WHITESPACE in ignore or Ignore.ARTICLES in ignore:
        text = " ".join(text.split())
    return text.strip()


def _near(rule: JudgeRule, answer: str, wanted: str) -> bool:
    number, target = as_decimal(answer), as_decimal(wanted)
    if number is None or target is None:
        return False
    allowed = Decimal(repr(rule.tolerance)) * (abs(target) if rule.relative else 1)
    return abs(number - target) <= allowed


def _same_json(answer: str, target: Any) -> bool:
    try:
        return bool(_canonical(json.loads(answer)) == _canonical(target))
    except (ValueError, RecursionError):
        return False


def _canonical(value: Any) -> Any:
    """Tells true from 1, which Python does not; numbers are equal whatever their notation."""
    if isinstance(value, dict):
        return {key: _canonical(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_canonical(entry) for entry in value]
    return ("bool", value) if isinstance(value, bool) else value
