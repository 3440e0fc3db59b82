"""Server-sent events as bytes: writes them, and reads them from chunks of any size, with a size limit."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

COMMENT = b": waiting\n\n"
BOM = b"\xef\xbb\xbf"
_NAME, _DATA = b"event: ", b"data: "


compact = json.JSONEncoder(separators=(",", ":")).encode
"""JSON without spaces; `json.dumps` would make an encoder each time."""


_read = json.JSONDecoder().raw_decode


def parsed(text: str) -> Any:
    """The JSON of an event; raises `ValueError`. Usually nothing is around it, so `json.loads` would cost twice as much."""
    if text.startswith("{"):
        value, end = _read(text)
        if end == len(text):
            return value
    return json.loads(text)


class Event(NamedTuple):
    name: str | None
    data: str


class EventTooLarge(Exception):
    """One event is larger than allowed."""


def encode(data: Any, name: str | None = None) -> bytes:
    """Encode one event; `data` is written as JSON unless it is already text."""
    text = data if isinstance(data, str) else compact(data)
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {text}\n\n".encode()


class EventReader:
    """Parses received bytes into events. Holds at most one unfinished event, and at most `max_bytes` of it."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._rest: list[bytes] = []
        self._size = 0
        self._name: str | None = None
        self._data: list[str] = []
        self._begins = True
        self._head = b""
        """The start of the input, while it may still turn out to be a byte order mark."""

    def feed(self, piece: bytes) -> Iterator[Event]:
        """The events that `piece` completes. Lines end with LF or CR LF; a lone CR, which no provider sends, does not end
        a line."""
        if self._begins:
            piece = self._head + piece
            self._head = piece if BOM.startswith(piece) else b""
            self._begins = bool(self._head) and len(piece) < len(BOM)
            if self._begins:
                return
            piece = piece.removeprefix(BOM)
        if not (self._rest or self._data) and self._name is None:
            piece = piece[(yield from self._plain(piece)) :]
        *lines, rest = piece.split(b"\n")
        if not lines:
            self._keep(rest)
            return
        lines[0] = b"".join([*self._rest, lines[0]])
        self._rest.clear()
        self._size = sum(len(part) for part in self._data)
        for line in lines:
            event = self._line(line.removesuffix(b"\r"))
            if event is not None:
                yield event
        self._keep(rest)

    def _plain(self, piece: bytes) -> Generator[Event, None, int]:
        """Fast path for events at the start of `piece` in the usual form: an optional name and one line of data. Returns
        how far it got."""
        begin = 0
        while True:
            name, at = None, begin
            if piece.startswith(_NAME, begin):
                if not (at := piece.find(b"\n", begin) + 1):
                    return begin
                name = piece[begin + len(_NAME) : at - 1].decode("utf-8", "replace")
            end = piece.find(b"\n", at)
            if end < 0 or not piece.startswith(b"\n", end + 1) or not piece.startswith(_DATA, at):
                return begin
            if b"\r" in piece[begin:end]:
                return begin
            if end - at > self._max_bytes:
                raise EventTooLarge
            yield Event(name, piece[at + len(_DATA) : end].decode("utf-8", "replace"))
            begin = end + 2

    def end(self) -> Iterator[Event]:
        """The last event, if the stream ended properly but without the final blank line."""
        for line in (b"".join(self._rest), b""):
            event = self._line(line.removesuffix(b"\r"))
            if event is not None:
                yield event
        self._rest.clear()

    def _keep(self, rest: bytes) -> None:
        if rest:
            self._rest.append(rest)
            self._count(len(rest))

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > self._max_bytes:
            raise EventTooLarge

    def _line(self, line: bytes) -> Event | None:
        if not line:
            name, data = self._name, self._data
            self._name, self._data, self._size = None, [], 0
            return Event(name, "\n".join(data)) if data else None
        field, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._count(len(value))
            self._data.append(value)
        elif field == "event":
            self._name = value
        return None
