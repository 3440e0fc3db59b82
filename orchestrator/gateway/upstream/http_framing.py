"""HTTP/1.1 answers from received bytes: the head, and where the body ends. Pure; every length is capped.

Written out here because it is on the path of every piece of every answer: a model's answer comes in thousands of pieces,
of hundreds of calls at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

MAX_HEAD_BYTES = 64 << 10
MAX_LINE_BYTES = 16 << 10
LAST_CHUNK = b"0\r\n\r\n"
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5]\d\d)(?: .*)?")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}")
_PLAIN_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})\r\n")
_LENGTH = re.compile(r"\d{1,18}")


class BadResponse(Exception):
    """What came is not HTTP/1.1."""


@dataclass(frozen=True)
class Head:
    """Status and headers; names in lower case, values of repeated ones joined."""

    status: int
    headers: dict[str, str]
    lasting: bool  #: the connection may be used again after the body


class Body(Protocol):
    """The framing of one body. `feed` gives what belongs to it; `done` and `rest` say that it ended, and what came after."""

    done: bool
    rest: bytes

    def feed(self, data: bytes) -> list[bytes]: ...

    def may_end(self, data: bytes, waiting: int) -> bool:
        """Whether `data`, the last of `waiting` bytes that were not fed yet, looks like the end; a guess, to be quick."""

    def end(self) -> None:
        """The connection was closed in good order; raises `BadResponse` when more should have come."""


def parse_head(head: bytes) -> Head:
    """A head without its last blank line."""
    first, *lines = head.replace(b"\r\n", b"\n").split(b"\n")
    match = _STATUS_LINE.fullmatch(first)
    if match is None:
        raise BadResponse("it does not begin with a status line")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or _NAME.fullmatch(name) is None:
            raise BadResponse("it has a header that cannot be read")
        key, text = name.decode("ascii").lower(), value.strip(b" \t").decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    tokens = headers.get("connection", "").lower()
    return Head(int(match[2]), headers, match[1] == b"1" and "close" not in tokens)


def body_of(head: Head) -> Body:
    """How the body after this head is framed."""
    coding = head.headers.get("transfer-encoding", "").strip().lower()
    if head.status in (204, 304):
        return Sized(0)
    if coding:
        if coding != "chunked":
            raise BadResponse(f"its transfer coding is {coding[:40]}")
        return Chunked()
    length = head.headers.get("content-length")
    if length is None:
        return UntilClosed()
    lengths = {part.strip() for part in length.split(",")}
    if len(lengths) != 1 or _LENGTH.fullmatch(value := lengths.pop()) is None:
        raise BadResponse("its length cannot be read")
    return Sized(int(value))


class Sized:
    def __init__(self, length: int) -> None:
        self._left = length
        self.done = length == 0
        self.rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        if self.done:
            self.rest += data
            return []
        if len(data) > self._left:
            data, self.rest = data[: self._left], data[self._left :]
        self._left -= len(data)
        self.done = self._left == 0
        return [data]

    def may_end(self, data: bytes, waiting: int) -> bool:
        return waiting >= self._left

    def end(self) -> None:
        if not self.done:
            raise BadResponse("it was cut short")


class UntilClosed:
    done = False
    rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        return [data]

    def may_end(self, data: bytes, waiting: int) -> bool:
        return False

    def end(self) -> None:
        self.done = True


class _Next(Enum):
    SIZE = auto()
    DATA = auto()
    AFTER_DATA = auto()
    TRAILER = auto()


class Chunked:
    def __init__(self) -> None:
        self.done = False
        self.rest = b""
        self._next = _Next.SIZE
        self._left = 0
        self._line = b""
        self._trailers = 0

    def feed(self, data: bytes) -> list[bytes]:
        found: list[bytes] = []
        position, size = self._plain(data, found), len(data)
        while position < size and not self.done:
            if self._next is _Next.DATA:
                piece = data[position : position + self._left]
                found.append(piece)
                position += len(piece)
                self._left -= len(piece)
                if not self._left:
                    self._next = _Next.AFTER_DATA
                continue
            end = data.find(b"\n", position)
            if end < 0:
                self._line += data[position:]
                if len(self._line) > MAX_LINE_BYTES:
                    raise BadResponse("a line between its chunks is too long")
                return found
            line = (self._line + data[position:end]).removesuffix(b"\r")
            self._line, position = b"", end + 1
            self._take(line)
        self.rest += data[position:]
        return found

    def _plain(self, data: bytes, found: list[bytes]) -> int:
        """Chunks that are whole and written as nearly everybody does, at the beginning of `data`; how far they go."""
        position = 0
        if self._next is not _Next.SIZE or self._line or self.done:
            return position
        while (match := _PLAIN_SIZE.match(data, position)) is not None:
            begin = match.end()
            end = begin + int(match[1], 16)
            if begin == end or data[end : end + 2] != b"\r\n":
                break
            found.append(data[begin:end])
            position = end + 2
        return position

    def may_end(self, data: bytes, waiting: int) -> bool:
        return data.endswith(b"\r\n\r\n") or len(data) < len(LAST_CHUNK)

    def end(self) -> None:
        if not self.done:
            raise BadResponse("it was cut short")

    def _take(self, line: bytes) -> None:
        if self._next is _Next.SIZE:
            text = line.partition(b";")[0].strip(b" \t")
            if _SIZE.fullmatch(text) is None:
                raise BadResponse("the size of a chunk cannot be read")
            self._left = int(text, 16)
            self._next = _Next.DATA if self._left else _Next.TRAILER
        elif self._next is _Next.AFTER_DATA:
            if line:
                raise BadResponse("a chunk is longer than it said")
            self._next = _Next.SIZE
        else:
            self._trailers += len(line)
            if self._trailers > MAX_HEAD_BYTES:
                raise BadResponse("its trailers are too long")
            self.done = not line
