"""The elements of a JSON array that comes in pieces, one after the other, so that the whole text is never held at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

_SPACE = " \t\n\r"
_AFTER_NUMBER = f",]{_SPACE}"


def json_items(pieces: Iterable[str]) -> Iterator[Any]:
    """Each element; `ValueError` if the text is no array, is cut short, or goes on after it."""
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
    """The part of the text that is not read yet and has arrived."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self._text = ""
        self._decode = json.JSONDecoder().raw_decode

    def next_mark(self, *, take: bool = True) -> str:
        """The next character that is no space; empty at the end."""
        while not (text := self._text.lstrip(_SPACE)):
            if not self._grow(1):
                return ""
        self._text = text[1:] if take else text
        return text[0]

    def value(self) -> Any:
        """One whole element. What has not arrived yet looks broken, so more is fetched, twice as much each time."""
        self.next_mark(take=False)
        while True:
            try:
                value, end = self._decode(self._text)
            except ValueError:
                if not self._grow(len(self._text)):
                    raise
                continue
            whole = not isinstance(value, (int, float)) or self._text[end : end + 1] in (*_AFTER_NUMBER,)
            if whole or not self._grow(1):  # 1.5 begins like 1
                self._text = self._text[end:]
                return value

    def _grow(self, size: int) -> bool:
        got = []
        while size > 0 and (piece := next(self._pieces, None)) is not None:
            got.append(piece)
            size -= len(piece)
        self._text = "".join([self._text, *got])
        return bool(got)
