"""The rows of a Parquet file, decoded by a process of their own under limits of memory and processor time.

The process gets the opened file, an empty environment and nothing else. Whatever happens to it, a crash included, is one
sentence here.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.formats.parquet import worker
from orchestrator.datasets.formats.rows import LeftOut, Row
from orchestrator.datasets.formats.unpacking import allowance, too_large

MEMORY_BYTES = 1 << 30
CPU_S = 300
BYTES_PER_CPU_S = 2 << 20
MAX_LINE = 512 << 20
_ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "mimalloc",
    "MIMALLOC_DISALLOW_ARENA_ALLOC": "1",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
}
"""Memory is given back as soon as it is free: measured, a fifth less than with the system's allocator."""

RowsDone = Callable[[int, int], None]
"""Rows read so far, and rows in the file."""


def parquet_rows(
    name: str, file: BinaryIO, size: int, done: RowsDone, memory_bytes: int = MEMORY_BYTES
) -> Iterator[Row | LeftOut]:
    """Yields the rows of an opened file of `size` bytes."""
    left = allowance(size)
    with _decoding(name, file, size, memory_bytes, "rows") as lines:
        total = _heading(name, next(lines))["rows"]
        number = 0
        for line in lines:
            left -= len(line)
            if left < 0:
                raise too_large(name)
            message = _parsed(name, line)
            del line
            if isinstance(message, dict):
                _finish(name, message, number, total)
                return
            number, values = message
            del message
            done(number, total)
            position = f"{name} row {number}"
            if isinstance(values, str):
                yield LeftOut(position, values)
            else:
                yield Row(position, number, values)
            del values


def parquet_columns(name: str, file: BinaryIO, size: int) -> list[str]:
    with _decoding(name, file, size, MEMORY_BYTES, "columns") as lines:
        return cast(list[str], _heading(name, next(lines))["columns"])


@contextmanager
def _decoding(name: str, file: BinaryIO, size: int, memory_bytes: int, task: str) -> Iterator[Iterator[bytes]]:
    file.seek(0)
    cpu_s = CPU_S + size // BYTES_PER_CPU_S
    command = [sys.executable, "-I", worker.__file__, str(memory_bytes), str(cpu_s), task]
    with subprocess.Popen(
        command, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_ENVIRONMENT, cwd="/", close_fds=True
    ) as process:
        try:
            yield _lines(name, process)
        finally:
            process.kill()


def _lines(name: str, process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    assert process.stdout is not None
    while line := process.stdout.readline(MAX_LINE):
        if not line.endswith(b"\n"):
            if len(line) >= MAX_LINE:
                raise BadSource(f"{name} has a row of more than {MAX_LINE >> 20} MiB; nothing was built.")
            break
        yield line
    raise BadSource(f"{name} cannot be read as Parquet: {_end(process.wait())}; nothing was built.")


def _end(code: int) -> str:
    """Why the process ended without a last word."""
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return "decoding it took too much processor time or memory"
    if code < 0:
        return f"it makes the decoder crash (signal {-code}), so it is damaged or made to do harm"
    return f"the decoder ended with code {code}"


def _heading(name: str, line: bytes) -> dict[str, Any]:
    message = _parsed(name, line)
    if "error" in message:
        raise BadSource(f"{name} cannot be read as Parquet: {message['error']}. Nothing was built.")
    return cast(dict[str, Any], message)


def _finish(name: str, message: dict[str, Any], number: int, total: int) -> None:
    if "error" in message:
        raise BadSource(f"{name} cannot be read as Parquet after row {number}: {message['error']}. Nothing was built.")
    if message["end"] != total:
        raise BadSource(f"{name} has {number} rows, but its footer says {total}; it is damaged. Nothing was built.")


def _parsed(name: str, line: bytes) -> Any:
    """Numbers for which JSON has no word become null."""
    try:
        return json.loads(line, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise BadSource(f"{name} cannot be read as Parquet: {error}. Nothing was built.") from None
