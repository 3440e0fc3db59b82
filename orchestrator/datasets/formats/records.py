"""Records of a source file: their fields, the elements of a JSON array, and the problems made from them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from orchestrator.datasets.formats.source import Source, TooLong, parse_object
from orchestrator.datasets.packs.pack import Entry


class Unusable(Exception):
    """The record cannot be scored; the text is one sentence with the reason."""


@dataclass(frozen=True)
class Found:
    """A problem; `record` is the input of the benchmark's adapter."""

    place: str
    entry: Entry
    record: dict[str, Any]


@dataclass(frozen=True)
class LeftOut:
    """A record that was left out."""

    place: str
    why: str

    def __str__(self) -> str:
        return f"{self.place}: {self.why}"


class Format(Protocol):
    """Reads one source file of a benchmark. Raises `BadSource` if the file as a whole cannot be read."""

    @property
    def adapter(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def licence(self) -> str: ...
    @property
    def origin(self) -> str: ...

    def read(self, source: Source) -> Iterator[Found | LeftOut]: ...


Reader = Callable[[dict[str, Any]], tuple[Entry, dict[str, Any]]]


def text(record: Mapping[str, Any], field: str) -> str:
    value = record.get(field)
    if not isinstance(value, str) or not value.strip():
        raise Unusable(f"field {field} is missing or no text")
    return value


def texts(record: Mapping[str, Any], field: str) -> list[str]:
    value = record.get(field)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Unusable(f"field {field} is missing or no list of texts")
    return value


def read_lines(source: Source, read: Reader) -> Iterator[Found | LeftOut]:
    """Applies `read` to every line of a JSON-lines file."""
    for number, line in source.lines():
        place = f"{source.path.name} line {number}"
        if isinstance(line, TooLong):
            yield LeftOut(place, "longer than a line may be")
            continue
        try:
            yield Found(place, *read(parse_object(line)))
        except (Unusable, ValueError) as error:
            yield LeftOut(place, str(error))


def read_array(name: str, rows: list[Any], read: Reader) -> Iterator[Found | LeftOut]:
    """Applies `read` to every element of a JSON array."""
    for number, row in enumerate(rows, start=1):
        place = f"{name} record {number}"
        try:
            if not isinstance(row, dict):
                raise Unusable("not a JSON object")
            yield Found(place, *read(row))
        except Unusable as error:
            yield LeftOut(place, str(error))


_SPACE = " \t\n\r"
_AFTER_NUMBER = f",]{_SPACE}"


def json_items(pieces: Iterable[str]) -> Iterator[Any]:
    """Yields each element; raises `ValueError` if the text is not an array, is truncated, or has trailing data."""
    window = _Window(iter(pieces))
    if window.next_mark() != "[":
        raise ValueError("not a JSON array")
    if window.next_mark(take=False) == "]":
        window.next_mark()
    else:
        while True:
            yield window.value()
            mark = window.next_mark()
            if mark == "]":
                break
            if mark != ",":
                raise ValueError("no comma between two elements")
    if window.next_mark():
        raise ValueError("something follows the array")


class _Window:
    """The part of the text that has arrived and is not parsed yet."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self._text = ""
        self._decode = json.JSONDecoder().raw_decode

    def next_mark(self, *, take: bool = True) -> str:
        """The next character that is not a space; empty at the end."""
        while not (text := self._text.lstrip(_SPACE)):
            if not self._grow(1):
                return ""
        self._text = text[1:] if take else text
        return text[0]

    def value(self) -> Any:
        """Parses one complete element. Incomplete text looks invalid, so more is fetched, twice as much each time."""
        self.next_mark(take=False)
        while True:
            try:
                value, end = self._decode(self._text)
            except ValueError:
                if not self._grow(len(self._text)):
                    raise
                continue
            whole = not isinstance(value, (int, float)) or self._text[end : end + 1] in (*_AFTER_NUMBER,)
            if whole or not self._grow(1):  # "1" may be the beginning of "1.5"
                self._text = self._text[end:]
                return value

    def _grow(self, size: int) -> bool:
        got = []
        while size > 0 and (piece := next(self._pieces, None)) is not None:
            got.append(piece)
            size -= len(piece)
        self._text = "".join([self._text, *got])
        return bool(got)
