"""Finds a mathematical answer: the content of the last `\\boxed{...}`, else what is stated as the answer. Pure, linear."""

import re
from enum import StrEnum

from runner.rules.extraction import Extraction, without_thinking

BOX = re.compile(r"\\f?boxed *\{|\\f?boxed +(?=[0-9A-Za-z])")
STATED = re.compile(r"(?i:answer is|answer(?=:)):? {0,3}([^\n]{1,500})")
ENDS = ".,;*_ \t"


class BoxedRule(StrEnum):
    """How the answer was found."""

    BOXED = "boxed"  #: in the last box
    STATED = "stated"  #: after the last "answer is" or "answer:"
    NONE = "none"  #: nothing found


def extract_boxed(text: str) -> Extraction:
    """Returns the answer without the box or the mathematical delimiters. A statement counts only if there is no box."""
    text = without_thinking(text)
    start = _last(BOX, text)
    if start is not None:
        content = _in_braces(text, start.end()) if start[0].endswith("{") else text[start.end() :].split(maxsplit=1)[0]
        if content is None:  # the text ends inside its box
            return Extraction(None, BoxedRule.NONE, complete=False)
        answer = content.strip().strip("$").strip()
        return Extraction(answer, BoxedRule.BOXED) if answer else Extraction(None, BoxedRule.NONE)
    stated = _last(STATED, text)
    answer = _undelimited(stated[1]) if stated else ""
    return Extraction(answer, BoxedRule.STATED, complete=False) if answer else Extraction(None, BoxedRule.NONE)


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    last = None
    for match in pattern.finditer(text):
        last = match
    return last


def _in_braces(text: str, at: int) -> str | None:
    depth = 1
    for brace in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, at):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if not depth:
            return text[at : brace.start()]
    return None


def _undelimited(text: str) -> str:
    text = text.strip(ENDS)
    for opening, closing in (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]")):
        if text.startswith(opening) and text.endswith(closing) and len(text) > len(opening) + len(closing):
            return text[len(opening) : -len(closing)].strip(ENDS)
    return text
