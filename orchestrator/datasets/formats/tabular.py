"""Records from any file that data is published in, one interface: JSON lines, JSON arrays, CSV, TSV and Parquet, each also
compressed with gzip, Zstandard or in a zip.

    for row in read_rows([Path("test-00000-of-00002.parquet"), Path("test-00001-of-00002.parquet")]):
        if isinstance(row, LeftOut):
            ...                                    # str(row) is "test.csv row 7: it has 3 fields, the header has 4"
        else:
            row.values["question"], row.position   # "test-00000-of-00002.parquet row 12"

Rows are read one at a time, in the order of the files, with bounded memory. Parquet, compression and arrays (`[`) are
recognised by their content, CSV and TSV by their names; everything else is JSON lines. A record that cannot be read is a
`LeftOut`; a file that cannot be read raises `BadSource` with one sentence.
"""

from __future__ import annotations

import codecs
import io
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.formats.delimited import SEPARATORS, delimited_rows
from orchestrator.datasets.formats.json_array import json_items
from orchestrator.datasets.formats.parquet.rows import parquet_columns, parquet_rows
from orchestrator.datasets.formats.rows import LeftOut, Row
from orchestrator.datasets.formats.source import (
    LOOK_UP_LINES,
    PARQUET,
    PARQUET_ENCRYPTED,
    Content,
    Progress,
    Source,
    TooLong,
    parse_object,
)
from orchestrator.datasets.formats.unpacking import CHUNK

__all__ = ["LeftOut", "Row", "columns", "read_rows", "rows_of"]

_SNIFFED = 4096


def read_rows(paths: Iterable[Path], progress: Progress | None = None) -> Iterator[Row | LeftOut]:
    """The records of several files, one after another."""
    for path in paths:
        yield from rows_of(Source(path, progress))


def columns(path: Path) -> list[str]:
    """The names of a file's fields: from the header or the footer; for JSON, those of the first record."""
    source = Source(path)
    with source.content() as content:
        if _is_parquet(content):
            with _seekable(source, content) as (file, size):
                return parquet_columns(path.name, file, size)
    for row in islice(read_rows([path]), LOOK_UP_LINES):
        if isinstance(row, Row):
            return list(row.values)
    raise BadSource(f"{path.name} has no record that can be read.")


def rows_of(source: Source) -> Iterator[Row | LeftOut]:
    """The records of one file. Its `sha256` is known when all were read."""
    with source.content() as content:
        if _is_parquet(content):
            yield from _parquet(source, content)
        elif content.suffix in SEPARATORS:
            yield from _delimited(source, content)
        elif _begins_with_bracket(content.stream):
            yield from _array(source, content)
        else:
            yield from _lines(source, content)


def _is_parquet(content: Content) -> bool:
    return content.stream.peek(4)[:4] in (PARQUET, PARQUET_ENCRYPTED) or content.suffix == ".parquet"


def _begins_with_bracket(stream: io.BufferedReader[Any]) -> bool:
    return stream.peek(_SNIFFED)[:_SNIFFED].removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")


def _lines(source: Source, content: Content) -> Iterator[Row | LeftOut]:
    for number, line in source.lines_of(content.stream):
        position = f"{source.path.name} line {number}"
        if isinstance(line, TooLong):
            yield LeftOut(position, "longer than a line may be")
            continue
        held = [line]
        del line  # it may be large, and only one form of it is kept
        try:
            yield Row(position, number, parse_object(held.pop()))
        except ValueError as error:
            yield LeftOut(position, str(error))


def _delimited(source: Source, content: Content) -> Iterator[Row | LeftOut]:
    with closing(delimited_rows(source.path.name, content.stream, content.suffix)) as rows:
        for count, row in enumerate(rows):
            if count % LOOK_UP_LINES == 0:
                source.look_up()
            yield row


def _array(source: Source, content: Content) -> Iterator[Row | LeftOut]:
    name = source.path.name
    decode = codecs.getincrementaldecoder("utf-8-sig")("surrogatepass").decode
    pieces = (decode(piece) for piece in source.pieces_of(content.stream))
    number = 0
    try:
        for number, value in enumerate(json_items(pieces), start=1):
            if isinstance(value, dict):
                yield Row(f"{name} record {number}", number, value)
            else:
                yield LeftOut(f"{name} record {number}", "not a JSON object")
    except ValueError as error:
        after = f" after record {number}" if number else ""
        raise BadSource(f"{name} is not JSON{after} ({error}); nothing was built.") from None


def _parquet(source: Source, content: Content) -> Iterator[Row | LeftOut]:
    whole = source.path.stat().st_size

    def done(rows: int, total: int) -> None:
        if source.progress and total > 0:
            source.progress(min(whole, whole * rows // total), whole)

    with _seekable(source, content) as (file, size):
        yield from parquet_rows(source.path.name, file, size, done)


@contextmanager
def _seekable(source: Source, content: Content) -> Iterator[tuple[BinaryIO, int]]:
    """The content as a file with its size: the file itself, or a temporary copy of what was decompressed."""
    if content.packed:
        beside = source.path.parent if os.access(source.path.parent, os.W_OK) else None  # /tmp may be memory
        with tempfile.TemporaryFile(prefix=".benchyard-", dir=beside) as copy:
            shutil.copyfileobj(content.stream, copy, CHUNK)
            copy.flush()
            yield cast(BinaryIO, copy), copy.tell()
    else:
        with source.path.open("rb") as file:
            yield file, os.fstat(file.fileno()).st_size
