"""GSM8K word problems: a question and a worked answer whose last line is `#### <number>`.

The file has no ids: a problem is named `<file stem>/<number of the record>`, for example `test/12`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from orchestrator.datasets.formats.records import Found, LeftOut, Unusable, text
from orchestrator.datasets.formats.source import Source
from orchestrator.datasets.formats.tabular import rows_of
from orchestrator.datasets.packs.pack import Entry

MARK = "#### "
_SHARD = re.compile(r"-00000-of-00001$")
"""The end of the name of a Parquet file on the hub: `test-00000-of-00001`."""


@dataclass(frozen=True)
class Gsm8k:
    adapter: str = "gsm8k"
    description: str = "1,319 grade-school word problems with a number as the answer."
    licence: str = "MIT"
    origin: str = "openai/grade-school-math"

    def read(self, source: Source) -> Iterator[Found | LeftOut]:
        name = _SHARD.sub("", source.path.name.split(".", 1)[0])
        for row in rows_of(source):
            if isinstance(row, LeftOut):
                yield row
                continue
            try:
                record = {"question": text(row.values, "question"), "answer": final_number(text(row.values, "answer"))}
                yield Found(row.position, Entry(id=f"{name}/{row.number}"), record)
            except Unusable as error:
                yield LeftOut(row.position, str(error))


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
