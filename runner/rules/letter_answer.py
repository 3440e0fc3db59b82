"""Finds the letter of a choice as the answer, by the rules of MMLU-Pro's authors; the last statement counts."""

import re
import string
from collections.abc import Iterable
from enum import StrEnum
from functools import cache

from runner.rules.extraction import Extraction, without_thinking

STATED = r"answer is:? ?\(?([A-{last}])\b"
LABELLED = r"[Aa]nswer: {{0,20}}\(?([A-{last}])\b"
BOXED = r"\\boxed\{{(?:\\text\{{)?\(?([A-{last}])\)?\}}"
ALONE = r"\b([A-{last}])\b"
TEN = 10
"""As many choices as MMLU-Pro has."""
MOST_CHOICES = 26


class LetterRule(StrEnum):
    """How the letter was found."""

    STATED = "stated"  #: "the answer is (X)", the last one
    BOXED = "boxed"  #: the last letter in a box
    LABELLED = "labelled"  #: "Answer: X", the last one
    LAST_LETTER = "last_letter"  #: the last letter that stands alone
    NONE = "none"  #: nothing found


def extract_letter(text: str, choices: int = TEN) -> Extraction:
    """Returns the chosen letter, one of the first `choices`. `LAST_LETTER` needs an answer that was not cut off."""
    text = without_thinking(text).replace("**", "")
    for rule, pattern in (
        (LetterRule.STATED, STATED),
        (LetterRule.BOXED, BOXED),
        (LetterRule.LABELLED, LABELLED),
    ):
        if letter := _last(_pattern(pattern, choices).finditer(text)):
            return Extraction(letter, rule)
    if letter := _last(_pattern(ALONE, choices).finditer(text)):
        return Extraction(letter, LetterRule.LAST_LETTER, complete=False)
    return Extraction(None, LetterRule.NONE)


@cache
def _pattern(template: str, choices: int) -> re.Pattern[str]:
    return re.compile(template.format(last=string.ascii_uppercase[min(choices, MOST_CHOICES) - 1]))


def _last(matches: Iterable[re.Match[str]]) -> str | None:
    found = None
    for match in matches:
        found = match[1]
    return found
