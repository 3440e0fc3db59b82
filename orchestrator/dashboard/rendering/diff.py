"""A line-by-line diff of expected and actual output. Pure and bounded: long input is cut, with a note."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

MAX_LINES = 200
MAX_CHARS = 400


@dataclass(frozen=True)
class DiffLine:
    """One row: `same`, `missing` (expected only), `extra` (got only) or `note`."""

    kind: str
    text: str

    @property
    def sign(self) -> str:
        return {"same": " ", "missing": "−", "extra": "+"}.get(self.kind, "…")


def diff(expected: str, actual: str, most: int = MAX_LINES) -> list[DiffLine]:
    first, second = expected.splitlines(), actual.splitlines()
    cut = len(first) > most or len(second) > most
    rows = list(_rows(first[:most], second[:most]))
    if cut:
        rows.append(DiffLine("note", f"only the first {most} lines of each are compared here"))
    return rows


def _rows(first: list[str], second: list[str]) -> Iterator[DiffLine]:
    for tag, start, end, other_start, other_end in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from (DiffLine("same", _short(line)) for line in first[start:end])
            continue
        yield from (DiffLine("missing", _short(line)) for line in first[start:end])
        yield from (DiffLine("extra", _short(line)) for line in second[other_start:other_end])


def _short(line: str) -> str:
    return line if len(line) <= MAX_CHARS else f"{line[:MAX_CHARS]}… ({len(line):,} characters)"
