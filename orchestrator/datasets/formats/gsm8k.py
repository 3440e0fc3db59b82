"""GSM8K word problems: a question and a worked answer whose last line is `#### <number>`.

The file has no ids: a problem is named `<file stem>/<line>`, for example `test/12`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from orchestrator.datasets.formats.records import Found, LeftOut, Unusable, text
from orchestrator.datasets.formats.source import Source, TooLong, parse_object
from orchestrator.datasets.packs.pack import Entry

MARK = "#### "


@dataclass(frozen=True)
class Gsm8k:
    adapter: str = "gsm8k"
    description: str = "1,319 grade-school word problems with a number as the answer."
    licence: str = "MIT"
    origin: str = "openai/grade-school-math"

    def read(self, source: Source) -> Iterator[Found | LeftOut]:
        stem = source.path.name.split(".", 1)[0]
        for number, line in source.lines():
            place = f"{source.path.name} line {number}"
            if isinstance(line, TooLong):
                yield LeftOut(place, "longer than a line may be")
                continue
            try:
                raw = parse_object(line)
                record = {"question": text(raw, "question"), "answer": final_number(text(raw, "answer"))}
                yield Found(place, Entry(id=f"{stem}/{number}"), record)
            except (Unusable, ValueError) as error:
                yield LeftOut(place, str(error))


def final_number(answer: str) -> str:
    """The number after the last `####`, without thousands separators."""
    _, mark, tail = answer.rpartition(MARK)
    number = tail.strip().replace(",", "")
    try:
        finite = mark and Decimal(number).is_finite()
    except InvalidOperation:
        finite = False
    if not finite:
        raise Unusable("the answer does not end with #### and a number")
    return number
