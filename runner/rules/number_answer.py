"""Finds a number as the answer: the last number marked with `####` counts, else the last in a box, else the last one stated
as the answer, else the last number in the text."""

import re
from decimal import Decimal, InvalidOperation
from enum import StrEnum

from runner.rules.extraction import Extraction, without_thinking

NUMBER = r"[-−+]?(?:\d[\d,]{0,40}(?:\.\d{1,40})?|\.\d{1,40})"
MARKED = re.compile(rf"####\s{{0,5}}[*$€£]{{0,3}}\s?({NUMBER})")
BOXED = re.compile(rf"\\boxed\{{\s?(?:\\\$|\$)?\s?({NUMBER})")
STATED = re.compile(rf"answer(?: is)?:?\s{{0,3}}[*$€£]{{0,4}}\s?({NUMBER})", re.IGNORECASE)
ANY = re.compile(rf"(?<![\w.])({NUMBER})")


class NumberRule(StrEnum):
    """How the number was found."""

    MARKED = "marked"  #: after the last ####
    BOXED = "boxed"  #: in the last box
    STATED = "stated"  #: after the last "answer is" or "answer:"
    LAST_NUMBER = "last_number"  #: the last number in the text
    NONE = "none"  #: nothing found


def as_number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip().replace(",", "").replace("−", "-"))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def extract_number(text: str) -> Extraction:
    """Returns the answer in plain digits. `LAST_NUMBER` applies only to an answer that was not cut off."""
    text = without_thinking(text)
    for rule, pattern in (
        (NumberRule.MARKED, MARKED),
        (NumberRule.BOXED, BOXED),
        (NumberRule.STATED, STATED),
        (NumberRule.LAST_NUMBER, ANY),
    ):
        number = None
        for match in pattern.finditer(text):
            number = match[1]
        if number is not None and (value := as_number(number)) is not None:
            return Extraction(f"{value:f}", rule, complete=rule is not NumberRule.LAST_NUMBER)
    return Extraction(None, NumberRule.NONE)
