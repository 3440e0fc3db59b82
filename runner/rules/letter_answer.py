"""Finds the letter of a choice as the answer, by the rules of MMLU-Pro's authors; the last statement counts."""

import re
from collections.abc import Iterable
from enum import StrEnum

from runner.rules.extraction import Extraction, without_thinking

STATED = re.compile(r"answer is:? ?\(?([A-J])\b")
LABELLED = re.compile(r"[Aa]nswer: {0,20}\(?([A-J])\b")
BOXED = re.compile(r"\\boxed\{(?:\\text\{)?\(?([A-J])\)?\}")
ALONE = re.compile(r"\b([A-J])\b")


class LetterRule(StrEnum):
    """How the letter was found."""

    STATED = "stated"  #: "the answer is (X)", the last one
    BOXED = "boxed"  #: the last letter in a box
    LABELLED = "labelled"  #: "Answer: X", the last one
    LAST_LETTER = "last_letter"  #: the last letter that stands alone
    NONE = "none"  #: nothing found


def extract_letter(text: str) -> Extraction:
    """Returns the chosen letter. `LAST_LETTER` applies only to an answer that was not cut off."""
    text = without_thinking(text).replace("**", "")
    for rule, pattern in (
        (LetterRule.STATED, STATED),
        (LetterRule.BOXED, BOXED),
        (LetterRule.LABELLED, LABELLED),
    ):
        if letter := _last(pattern.finditer(text)):
            return Extraction(letter, rule)
    if letter := _last(ALONE.finditer(text)):
        return Extraction(letter, LetterRule.LAST_LETTER, complete=False)
    return Extraction(None, LetterRule.NONE)


def _last(matches: Iterable[re.Match[str]]) -> str | None:
    found = None
    for match in matches:
        found = match[1]
    return found
