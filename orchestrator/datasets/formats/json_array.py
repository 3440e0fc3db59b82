"""The elements of a JSON array that arrives in pieces, one at a time in memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

MAX_ITEM = 512 << 20
"""Characters of one element."""
_SPACE = re.compile(r"[ \t\n\r]*")
_AFTER_NUMBER = frozenset(",] \t\n\r")


def json_items(pieces: Iterable[str], max_item: int = MAX_ITEM) -> Iterator[Any]:
    """Yields each element; raises `ValueError` if the text is not an array, is truncated, has trailing data, is nested too
    deeply, or has an element of more than `max_item` characters.
    """
    window = _Window(iter(pieces), max_item)
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
                raise ValueError("no comma between two elements" if mark else "the array has no end")
    if window.next_mark():
        raise ValueError("something follows the array")


class _Window:
    """The part of the text that has arrived; `_at` is where the part that is not parsed yet begins."""

    def __init__(self, pieces: Iterator[str], max_item: int) -> None:
        self._pieces = pieces
        self._max_item = max_item
        self._text = ""
        self._at = 0
        self._decode = json.JSONDecoder().raw_decode

    def next_mark(self, *, take: bool = True) -> str:
        """The next character that is not a space; empty at the end."""
        while True:
            spaces = _SPACE.match(self._text, self._at)
            self._at = spaces.end() if spaces else self._at
            if self._at < len(self._text):
                break
            if not self._grow(1):
                return ""
        mark = self._text[self._at]
        self._at += take
        return mark

    def value(self) -> Any:
        """Parses one complete element. Incomplete text looks invalid, so more is fetched, twice as much each time."""
        self.next_mark(take=False)
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except RecursionError:
                raise ValueError("an element is nested too deeply") from None
            except ValueError:
                waiting = len(self._text) - self._at
                if waiting > self._max_item:
                    raise ValueError(f"no element ends within {self._max_item >> 20} MiB") from None
                if not self._grow(waiting):
                    raise
                continue
            whole = not isinstance(value, (int, float)) or self._text[end : end + 1] in _AFTER_NUMBER
            if whole or not self._grow(1):  # "1" may be the beginning of "1.5"
                self._at = end
                return value

    def _grow(self, size: int) -> bool:
        """Fetches at least `size` characters and drops those that are parsed; False at the end."""
        got = []
        while size > 0 and (piece := next(self._pieces, None)) is not None:
            got.append(piece)
            size -= len(piece)
        if got:
            self._text = "".join([self._text[self._at :], *got])
            self._at = 0
        return bool(got)
