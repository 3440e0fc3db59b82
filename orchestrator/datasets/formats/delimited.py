"""CSV and TSV with a header: quoted fields with line breaks, a byte order mark, any of the usual separators.

Every value is a text. A row is left out with the reason if it has more or fewer fields than the header, if its quotes are
wrong, or if it is not UTF-8; the rows after it are read.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Generator, Iterator
from typing import Any

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.formats.rows import LeftOut, Row

MAX_ROW = 32 << 20
"""Characters of one row; a quote that is never closed would make one row of the rest of the file."""
MAX_COLUMNS = 10_000
SEPARATORS = {".csv": ",", ".tsv": "\t"}


def delimited_rows(name: str, stream: io.BufferedReader[Any], suffix: str) -> Generator[Row | LeftOut, None, None]:
    lines = _Lines(stream, name)
    try:
        yield from _rows(name, lines, suffix)
    finally:
        lines.release()


def _rows(name: str, lines: _Lines, suffix: str) -> Iterator[Row | LeftOut]:
    reader = csv.reader(lines, delimiter=_separator(lines.first, suffix), strict=True)
    csv.field_size_limit(MAX_ROW)  # for all of the process; every reader here sets the same
    header = _header(name, reader)
    number = 0
    while True:
        lines.begin_row()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            number += 1
            yield LeftOut(f"{name} row {number}", f"its quotes are wrong ({error})")
            continue
        if not cells:
            continue
        number += 1
        position = f"{name} row {number}"
        if len(cells) != len(header):
            yield LeftOut(position, f"it has {len(cells)} fields, the header has {len(header)}")
        elif not all(map(_is_text, cells)):
            yield LeftOut(position, "it is not UTF-8 text")
        else:
            yield Row(position, number, dict(zip(header, cells, strict=True)))


def _header(name: str, reader: Iterator[list[str]]) -> list[str]:
    try:
        header = next((cells for cells in reader if cells), [])
    except csv.Error as error:
        raise BadSource(f"The header of {name} cannot be read ({error}); nothing was built.") from None
    names = [cell.strip() for cell in header]
    if not names or len(names) > MAX_COLUMNS:
        raise BadSource(f"{name} has {len(names)} columns; a header with 1 to {MAX_COLUMNS} names is needed.")
    if not all(names) or len(set(names)) < len(names) or not all(map(_is_text, names)):
        raise BadSource(f"The first row of {name} is no header: every column needs a name, and no two the same.")
    return names


def _separator(first: str, suffix: str) -> str:
    """The suffix says it; but what is called CSV may use semicolons or tabs."""
    usual = SEPARATORS.get(suffix, ",")
    return usual if usual in first else max((usual, ";", "\t"), key=first.count)


def _is_text(cell: str) -> bool:
    """Bytes that are not UTF-8 were decoded as lone surrogates."""
    try:
        cell.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Lines:
    """The lines of a text, counted since the row began."""

    def __init__(self, stream: io.BufferedReader[Any], name: str) -> None:
        utf_16 = stream.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        encoding, errors = ("utf-16", "replace") if utf_16 else ("utf-8-sig", "surrogateescape")
        self._text = io.TextIOWrapper(stream, encoding, errors, newline="")
        self._name = name
        self._size = 0
        self.first = self._text.readline(MAX_ROW)
        self._held = [self.first]

    def release(self) -> None:
        """Leaves the stream open for whoever opened it."""
        self._text.detach()

    def begin_row(self) -> None:
        self._size = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._held.pop() if self._held else self._text.readline(MAX_ROW)
        self._size += len(line)
        if self._size >= MAX_ROW:
            raise BadSource(
                f"{self._name} has a row of more than {MAX_ROW >> 20} MiB, or a quote that is not closed; nothing was built."
            )
        if not line:
            raise StopIteration
        return line
