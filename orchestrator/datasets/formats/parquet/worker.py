"""Decodes one Parquet file in a process of its own and writes its rows to standard output as JSON lines. The only module
that imports pyarrow.

A damaged or hostile file can crash the decoder or make it ask for any amount of memory; here this ends one short-lived
process. The file is standard input (a seekable file, already opened). Each line that is written is one JSON value:

    {"columns": [...], "rows": N}     first, from the footer
    [12, {...}]                       row 12
    [12, "reason"]                    row 12 cannot be converted
    {"error": "reason"}               the file cannot be read (further); last
    {"end": N}                        all N rows were written; last

Values become JSON values. Lists stay lists, structs and maps become objects. Dates, times and timestamps become ISO 8601
texts (in UTC if they have a time zone, to the microsecond), durations seconds, decimals texts with all their digits, binary
values base64 texts. NaN and infinities are written as such; the reader makes null of them.

It is started by its file name, without our packages in its path: only the standard library and pyarrow are imported.
"""

from __future__ import annotations

import base64
import json
import os
import resource
import sys
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, BinaryIO

BATCH_BYTES = 4 << 20
MAX_BATCH_ROWS = 256
MAX_FOOTER_BYTES = 64 << 20
MAX_COLUMNS = 10_000
MAX_NESTING = 64
READ_BYTES = 256 << 10
"""A column is read in steps of this size, whatever the size of its row group."""


class Refused(Exception):
    """The file cannot be read; the text completes the sentence "FILE cannot be read: ..."."""


def main() -> None:
    memory_bytes, cpu_s = int(sys.argv[1]), int(sys.argv[2])
    columns_only = sys.argv[3] == "columns"
    for limit, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_DATA, memory_bytes),
        (resource.RLIMIT_CPU, cpu_s),
    ):
        resource.setrlimit(limit, (value, value))
    out = os.fdopen(1, "wb", 1 << 18)
    try:
        with os.fdopen(0, "rb", 0) as file:
            out.writelines(lines(file, columns_only=columns_only))
    except Refused as error:
        out.write(_line({"error": str(error)}))
    except MemoryError:
        out.write(_line({"error": f"it needs more than {memory_bytes >> 20} MiB of memory"}))
    out.flush()


def lines(file: BinaryIO, *, columns_only: bool = False) -> Iterator[bytes]:
    """The lines that describe the file."""
    _check_frame(file)
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    try:
        opened = pq.ParquetFile(
            pa.OSFile(f"/dev/fd/{file.fileno()}"),
            buffer_size=READ_BYTES,
            pre_buffer=False,
            page_checksum_verification=True,
            thrift_container_size_limit=1_000_000,
            thrift_string_size_limit=MAX_FOOTER_BYTES,
            schema_depth_limit=MAX_NESTING,
            arrow_extensions_enabled=False,
            binary_type=pa.large_binary(),
        )
        names = opened.schema_arrow.names
        if not 1 <= len(names) <= MAX_COLUMNS or opened.metadata.num_columns > MAX_COLUMNS:
            raise Refused(f"it has {opened.metadata.num_columns} columns, and 1 to {MAX_COLUMNS} are read")
        if len(set(names)) < len(names):
            raise Refused("two of its columns have the same name")
        yield _line({"columns": names, "rows": opened.metadata.num_rows})
        if columns_only:
            return
        done = 0
        for batch in opened.iter_batches(_batch_rows(opened.metadata), use_threads=False):
            yield from _rows(_plain(batch), done + 1)
            done += batch.num_rows
            del batch
    except MemoryError:  # among them pyarrow's own, which is an ArrowException too
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Refused(_reason(error)) from error
    yield _line({"end": done})


def _check_frame(file: BinaryIO) -> None:
    """Checks beginning and end of the file, so that nothing is parsed whose size is a lie."""
    size = file.seek(0, os.SEEK_END)
    if size < 12:
        raise Refused("it is cut short")
    file.seek(size - 8)
    tail = file.read(8)
    file.seek(0)
    if tail[4:] == b"PARE":
        raise Refused("it is encrypted; decrypt it first")
    if tail[4:] != b"PAR1":
        raise Refused("it is cut short or damaged, its end is missing; fetch it again")
    footer = int.from_bytes(tail[:4], "little")
    if footer > size - 12:
        raise Refused(f"it is damaged, its footer of {footer} bytes would be larger than the file; fetch it again")
    if footer > MAX_FOOTER_BYTES:
        raise Refused(f"its footer has {footer >> 20} MiB, and at most {MAX_FOOTER_BYTES >> 20} are read")


def _batch_rows(metadata: Any) -> int:
    """How many rows to decode at a time, by the largest average row of a row group."""
    largest = 1
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        largest = max(largest, group.total_byte_size // max(group.num_rows, 1))
    return max(1, min(MAX_BATCH_ROWS, BATCH_BYTES // largest))


def _plain(batch: Any) -> Any:
    """The batch with timestamps and times that Python can represent: to the microsecond, and in UTC."""
    import pyarrow as pa

    arrays = []
    for column in batch.columns:
        kind = _plain_type(column.type)
        arrays.append(column if kind.equals(column.type) else column.cast(kind, safe=False))
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _plain_type(kind: Any) -> Any:
    import pyarrow as pa
    from pyarrow import types

    if types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC" if kind.tz else None)
    if types.is_time(kind):
        return pa.time64("us")
    if types.is_duration(kind):
        return pa.duration("us")
    if types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.large_list(_plain_type(kind.value_type))
    if types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain_type(field.type)) for field in kind])
    if types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    return kind


def _rows(batch: Any, first: int) -> Iterator[bytes]:
    try:
        yield from [_line([number, row]) for number, row in enumerate(_values(batch), start=first)]
    except MemoryError:
        raise
    except Exception:  # one bad value: find it, and keep the other rows
        for index in range(batch.num_rows):
            try:
                (row,) = _values(batch.slice(index, 1))
                yield _line([first + index, row])
            except MemoryError:
                raise
            except Exception as error:
                yield _line([first + index, f"a value cannot be converted ({_reason(error)})"])


def _values(batch: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = batch.to_pylist(maps_as_pydicts="lossy")
    return rows


def _line(value: Any) -> bytes:
    return json.dumps(value, default=_as_json, separators=(",", ":")).encode() + b"\n"


def _as_json(value: Any) -> Any:
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, (bytes, memoryview)):
        return base64.b64encode(value).decode()
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    if "crypt" in text.lower():
        return "it is encrypted; decrypt it first"
    return text[:300] or type(error).__name__


if __name__ == "__main__":
    main()
