"""Results as Parquet, streamed: rows go to the encoder's process, and its output to the receiver, with little in between."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

from orchestrator.errors import ServerError
from orchestrator.runs.intake.bounds import finish_of
from orchestrator.runs.reports.exports import lines
from orchestrator.runs.reports.exports.parquet import worker
from orchestrator.runs.tables import ItemRow

MEMORY_BYTES = 1 << 30
READ_BYTES = 256 << 10
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = datetime.resolution
_KINDS = {
    "int64": [
        "position",
        "sample_index",
        "attempt",
        "tests_passed",
        "tests_total",
        "peak_bytes",
        "input_tokens",
        "output_tokens",
    ],
    "float64": ["cpu_s", "wall_s", "score", "latency_s"],
    "bool": ["fragile"],
    "time": ["created_at"],
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names}
COLUMNS = (*lines.COLUMNS, "prompt", "answer", "finish_reason", "latency_s")
Pages = AsyncIterator[tuple[str | None, Sequence[ItemRow]]]
"""Pages of results, each with the name of the model."""


async def as_parquet(pages: Pages) -> AsyncIterator[bytes]:
    """Raises `ServerError` if the encoder ends early, so that the receiver gets no complete file."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        worker.__file__,
        str(MEMORY_BYTES),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
        cwd="/",
    )
    feeding = asyncio.create_task(_feed(process, pages))
    try:
        assert process.stdout is not None
        while piece := await process.stdout.read(READ_BYTES):
            yield piece
        await feeding
        if code := await process.wait():
            raise ServerError(f"the Parquet file could not be written: its encoder ended with code {code}")
    finally:
        feeding.cancel()
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        with contextlib.suppress(asyncio.CancelledError, BrokenPipeError, ConnectionResetError):
            await feeding
        await process.wait()


async def _feed(process: asyncio.subprocess.Process, pages: Pages) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps([(name, _KIND_OF.get(name, "text")) for name in COLUMNS]).encode() + b"\n")
        async for model, rows in pages:
            process.stdin.write(await asyncio.to_thread(_encoded, model, rows))
            await process.stdin.drain()
    finally:
        process.stdin.close()


def _encoded(model: str | None, rows: Sequence[ItemRow]) -> bytes:
    return b"".join(json.dumps([_value(row, name, model) for name in COLUMNS]).encode() + b"\n" for row in rows)


def _value(row: ItemRow, name: str, model: str | None) -> Any:
    if name == "finish_reason":
        return finish_of(row.data) if row.data.get("calls") else None
    if name == "latency_s":
        return sum(float(call.get("latency_s") or 0) for call in row.data.get("calls") or [])
    value = lines.value(row, name, model)
    if isinstance(value, datetime):
        return (value - _EPOCH) // _MICROSECOND
    return value
