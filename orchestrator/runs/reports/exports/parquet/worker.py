"""Encodes rows as Parquet in a process of its own. With the reader of datasets, the only module that imports pyarrow.

Standard input is JSON lines: first the columns, `[["position", "int64"], ...]`, then one list of values per row. Standard
output is the file, written as it grows. A process of its own keeps pyarrow (60 MB, and its own allocator) out of the
service, and what it needs ends with it.

It is started by its file name, without our packages in its path: only the standard library and pyarrow are imported.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Iterable
from typing import Any, BinaryIO

GROUP_ROWS = 10_000
GROUP_BYTES = 16 << 20
"""A row group is written when its lines exceed either."""


class CountedOutput:
    """Standard output as pyarrow wants it: a file that knows its position but cannot seek."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._position = 0
        self.closed = False

    def write(self, data: Any) -> int:
        size = len(memoryview(data).cast("B"))
        self._file.write(data)
        self._position += size
        return size

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        self._file.flush()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.flush()
        self.closed = True


def main() -> None:
    memory_bytes = int(sys.argv[1])
    for limit, value in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_DATA, memory_bytes)):
        resource.setrlimit(limit, (value, value))
    with os.fdopen(0, "rb") as lines, os.fdopen(1, "wb", 1 << 18) as out:
        encode(lines, out)


def encode(lines: Iterable[bytes], out: BinaryIO) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)
    types = {
        "int64": pa.int64(),
        "float64": pa.float64(),
        "bool": pa.bool_(),
        "text": pa.large_string(),
        "time": pa.timestamp("us", tz="UTC"),
    }
    remaining = iter(lines)
    columns = json.loads(next(remaining))
    schema = pa.schema([pa.field(name, types[kind]) for name, kind in columns])
    with pq.ParquetWriter(CountedOutput(out), schema, compression="zstd", use_dictionary=True) as writer:

        def write(rows: list[list[Any]]) -> None:
            values = zip(*rows, strict=True)
            arrays = [_array(pa, list(column), field.type) for column, field in zip(values, schema, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))

        rows: list[list[Any]] = []
        size = 0
        for line in remaining:
            rows.append(json.loads(line))
            size += len(line)
            if len(rows) >= GROUP_ROWS or size >= GROUP_BYTES:
                write(rows)
                rows, size = [], 0
        if rows:
            write(rows)


def _array(pa: Any, values: list[Any], kind: Any) -> Any:
    """Times arrive as microseconds since 1970."""
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


if __name__ == "__main__":
    main()
