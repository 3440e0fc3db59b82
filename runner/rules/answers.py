"""Finds the answer in a model's text by the rules of a definition. Pure, and linear in the text."""

import json
import re
from enum import StrEnum
from typing import Any

from runner.contract.rules.grading import AnswerRule, Find
from runner.contract.rules.patterns import matches
from runner.rules.boxed_answer import extract_boxed
from runner.rules.extraction import Extraction, blocks_of, extract_code, without_thinking
from runner.rules.letter_answer import TEN, extract_letter
from runner.rules.number_answer import extract_number

MOST_STARTS = 200
"""How many opening brackets are tried as the start of a JSON value, from the end of the text."""
MOST_JSON_CHARS = 200_000
STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,9})\]")


class FoundBy(StrEnum):
    """How the answer was found. Code, letters and numbers name the rules of their own extractors."""

    TEXT = "text"  #: the whole text
    LAST_LINE = "last_line"  #: the last line that is not blank
    REGEX = "regex"  #: the last match of the definition's pattern
    JSON = "json"  #: the last JSON value in the text
    NONE = "none"  #: nothing found


def find_answer(rule: AnswerRule, text: str, choices: int = TEN) -> Extraction:
    """`choices` is how many the question has, if it has any."""
    match rule.find:
        case Find.CODE:
            return extract_code(text)
        case Find.LETTER:
            return extract_letter(text, choices)
        case Find.NUMBER:
            return extract_number(text)
    text = without_thinking(text).strip()
    match rule.find:
        case Find.LAST_LINE:
            answer, found = text.rpartition("\n")[2].strip(), FoundBy.LAST_LINE
        case Find.REGEX:
            assert rule.pattern is not None
            answer, found = "", FoundBy.REGEX
            for value in matches(rule.pattern, text):
                answer = value.strip()
        case Find.BOXED:
            return extract_boxed(text)
        case Find.JSON:
            answer, found = _json_answer(text, rule.path), FoundBy.JSON
        case _:
            answer, found = text, FoundBy.TEXT
    # Only a match or a closed JSON value shows that a text which was cut off holds the whole answer.
    return Extraction(answer, found, found in (FoundBy.REGEX, FoundBy.JSON)) if answer else Extraction(None, FoundBy.NONE)


def _json_answer(text: str, path: str | None) -> str:
    """The last JSON value that has the path, as text: a text as it is, everything else as JSON."""
    for value in _json_values(text):
        try:
            picked = at_path(value, path or "$")
        except LookupError:
            continue
        return picked.strip() if isinstance(picked, str) else json.dumps(picked, ensure_ascii=False)
    return ""


def _json_values(text: str) -> "list[Any]":
    """The JSON values of the text, the last one first: the whole text, code blocks, then objects and arrays within it."""
    text = text[-MOST_JSON_CHARS:]
    values = []
    for candidate in [text, *(block.code for block in reversed(blocks_of(text)) if block.closed)]:
        try:
            values.append(json.loads(candidate))
        except (ValueError, RecursionError):
            continue
    if not values:
        decoder = json.JSONDecoder()
        starts = [match.start() for match in re.finditer(r"[\[{]", text)][-MOST_STARTS:]
        end = -1
        spans = []
        for start in starts:
            if start < end:
                continue
            try:
                value, end = decoder.raw_decode(text, start)
            except (ValueError, RecursionError):
                continue
            spans.append(value)
        values = spans[::-1]
    return values


def at_path(value: Any, path: str) -> Any:
    """What `$.a.b[0]` names in a JSON value; raises `LookupError` if there is nothing."""
    rest = path.removeprefix("$")
    at = 0
    while at < len(rest):
        step = STEP.match(rest, at)
        if step is None:
            raise LookupError(path)
        name, index = step.groups()
        if name is not None and isinstance(value, dict) and name in value:
            value = value[name]
        elif index is not None and isinstance(value, list) and int(index) < len(value):
            value = value[int(index)]
        else:
            raise LookupError(path)
        at = step.end()
    return value
