"""Two texts beside each other, line by line, with their differences. Pure and bounded: long texts are cut, with a note."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

MAX_LINES = 400
MAX_CHARS = 400


@dataclass(frozen=True)
class SidePair:
    """One row: the line of either text with its number; None where a text has no line."""

    kind: str
    """`same`, `changed`, `first` (only the first has it) or `second`."""
    first: tuple[int, str] | None
    second: tuple[int, str] | None

    @property
    def marked(self) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
        """Both lines in three parts: what begins alike, what differs, what ends alike."""
        one, other = self.first[1] if self.first else "", self.second[1] if self.second else ""
        if self.kind != "changed":
            return (one, "", ""), (other, "", "")
        start = _alike(one, other)
        end = _alike(one[start:][::-1], other[start:][::-1])
        return _parts(one, start, end), _parts(other, start, end)


def side_by_side(first: str, second: str, most: int = MAX_LINES) -> tuple[list[SidePair], bool]:
    """The rows, and whether lines were left out."""
    one, other = first.splitlines(), second.splitlines()
    return list(_rows(one[:most], other[:most])), len(one) > most or len(other) > most


def _rows(first: list[str], second: list[str]) -> Iterator[SidePair]:
    for tag, start, end, other_start, other_end in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        left = [(number + 1, _short(first[number])) for number in range(start, end)]
        right = [(number + 1, _short(second[number])) for number in range(other_start, other_end)]
        for one, other in zip_longest(left, right):
            kind = "same" if tag == "equal" else "changed" if one and other else "first" if one else "second"
            yield SidePair(kind, one, other)


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (left, right) in pairs if left != right), min(len(one), len(other)))


def _parts(line: str, start: int, end: int) -> tuple[str, str, str]:
    stop = len(line) - end
    return line[:start], line[start:stop], line[stop:]


def _short(line: str) -> str:
    return line if len(line) <= MAX_CHARS else f"{line[:MAX_CHARS]}… ({len(line):,} characters)"
