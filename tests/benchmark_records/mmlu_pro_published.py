"""The letter that MMLU-Pro's own script takes, for comparison with published numbers.

Bold marks are deleted; then the first stated answer counts, then "Answer: X" on the first line that has one (the last
such on that line), then the last letter that stands alone. Written so that it is linear in the text.
"""

from __future__ import annotations

import re

FIRST_STATED = re.compile(r"answer is \(?([A-J])")
LABELLED = re.compile(r"[aA]nswer:\s*([A-J])")
ALONE = re.compile(r"\b[A-J]\b")


def published_letter(text: str) -> str | None:
    text = text.replace("**", "")
    if stated := FIRST_STATED.search(text):
        return stated[1]
    if first := LABELLED.search(text):
        end = text.find("\n", first.start())
        line = text[first.start() : end if end >= 0 else len(text)]
        return ([match[1] for match in LABELLED.finditer(line)] or [first[1]])[-1]
    letters = ALONE.findall(text)
    return letters[-1] if letters else None
