"""Reads the JSON documents of a file one at a time, each with its position: JSON lines, an array or one document; also gzip.

Blocking. Memory is bounded by the longest allowed document: a longer one is reported with its position and skipped.
"""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from orchestrator.errors import Invalid

MAX_DOCUMENT_BYTES = 16 << 20
CHUNK = 1 << 18
BLANK = " \t\r\n"


@dataclass(frozen=True)
class Document:
    place: str
    line: int
    value: Any


@dataclass(frozen=True)
class UnreadableDocument:
    place: str
    line: int
    reason: str


Found = Document | UnreadableDocument


def read(path: Path, max_bytes: int = MAX_DOCUMENT_BYTES) -> Iterator[Found]:
    """Yields every document. Raises `Invalid` if the file is empty or damaged as a whole."""
    try:
        start = _start(path)
        if not start.strip():
            raise Invalid("the body is empty; send traces as JSON lines")
        if start.lstrip()[:1] == b"[":
            yield from _array(path, max_bytes)
        elif (whole := _one_document(path, max_bytes)) is not None:
            yield Document("line 1", 1, whole)
        else:
            yield from _lines(path, max_bytes)
    except EOFError:
        raise Invalid("the gzip stream is cut short; send the file again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise Invalid(f"the gzip stream is damaged ({error}); send the file again") from None


def _open(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path, "rb")) if packed else path.open("rb")


def _start(path: Path) -> bytes:
    """The beginning of the file, up to the first bytes that are not blank."""
    with _open(path) as file:
        while (part := file.read(CHUNK)) and not part.strip():
            pass
        return part.removeprefix(codecs.BOM_UTF8)


def _one_document(path: Path, max_bytes: int) -> Any:
    """Reads a pretty-printed document that spans several lines; None if the first line is a complete document."""
    with _open(path) as file:
        first = file.readline(max_bytes + 1)
        while first and not first.strip():
            first = file.readline(max_bytes + 1)
        if first.strip() != b"{":
            return None
        rest = file.read(max_bytes + 1)
    try:
        return parse(first + rest) if len(rest) <= max_bytes else None
    except ValueError:
        return None


def _lines(path: Path, max_bytes: int) -> Iterator[Found]:
    with _open(path) as file:
        number = 0
        while line := file.readline(max_bytes + 1):
            number += 1
            position = f"line {number}"
            if len(line) > max_bytes and not line.endswith(b"\n"):
                while (more := file.readline(CHUNK)) and not more.endswith(b"\n"):
                    pass
                yield UnreadableDocument(position, number, f"longer than {max_bytes >> 20} MiB")
            elif line.strip():
                try:
                    yield Document(position, number, parse(line.removeprefix(codecs.BOM_UTF8) if number == 1 else line))
                except ValueError as error:
                    yield UnreadableDocument(position, number, str(error))


def parse(text: bytes) -> Any:
    """Parses JSON; raises `ValueError` with a short reason."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("not JSON that can be read: nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("not text in UTF-8") from None
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON value")


def _array(path: Path, max_bytes: int) -> Iterator[Found]:
    """Yields the elements of one large array without holding all of it in memory."""
    text, number = "", 0
    with _open(path) as file:
        incoming = codecs.getincrementaldecoder("utf-8-sig")("replace")
        pieces = (incoming.decode(piece, final=not piece) for piece in iter(lambda: file.read(CHUNK), b""))
        text = _more("", pieces).lstrip()[1:]
        while True:
            text = text.lstrip(BLANK + ",")
            if not text and not (text := _more(text, pieces).lstrip(BLANK + ",")):
                yield UnreadableDocument("the end", number, "the array is not closed; the file may be cut short")
                return
            if text[0] == "]":
                return
            number += 1
            position = f"record {number}"
            value, text, trouble = _element(text, pieces, max_bytes)
            if trouble is not None:
                yield UnreadableDocument(position, number, f"{trouble}; what follows it is not read")
                return
            yield Document(position, number, value)


def _more(text: str, pieces: Iterator[str]) -> str:
    for piece in pieces:
        if piece:
            return text + piece
    return text


def _element(text: str, pieces: Iterator[str], max_bytes: int) -> tuple[Any, str, str | None]:
    """Parses one element from the front of the text, reading more until it is complete, twice as much each time."""
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    enough = len(text)
    while True:
        while len(text) < enough and (longer := _more(text, pieces)) != text:
            text = longer
        try:
            value, end = decoder.raw_decode(text)
        except RecursionError:
            return None, text, "nested too deeply"
        except ValueError as error:
            longer = _more(text, pieces)
            if longer == text:
                return None, text, f"not JSON: {error}"
            if len(longer) > max_bytes:
                return None, text, f"not JSON, or longer than {max_bytes >> 20} MiB"
            text, enough = longer, min(2 * len(longer), max_bytes)
            continue
        if end == len(text) and isinstance(value, int | float) and (longer := _more(text, pieces)) != text:
            text, enough = longer, len(longer)  # a number may continue in the next piece
            continue
        return value, text[end:], None
