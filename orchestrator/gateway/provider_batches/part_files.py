"""The file of a part: its requests, written to disk piece by piece, so that memory stays small however many there are."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from orchestrator.db.session import Database
from orchestrator.gateway.protocols.protocol import Message
from orchestrator.gateway.provider_batches import queries
from orchestrator.gateway.provider_batches.lots import custom_id
from orchestrator.gateway.provider_batches.port import BatchApi
from orchestrator.gateway.provider_batches.tables import BatchPart
from orchestrator.system.zstd import decompress

AT_A_TIME = 200


@asynccontextmanager
async def part_file(
    db: Database, part: BatchPart, api: BatchApi, in_its_form: Callable[[Message], Message], folder: Path
) -> AsyncIterator[Path]:
    """The file exists for the duration of the block."""
    await asyncio.to_thread(lambda: folder.mkdir(parents=True, exist_ok=True))
    with tempfile.TemporaryDirectory(dir=folder) as place:
        file = Path(place) / "requests"
        await _write(db, part, api, in_its_form, file)
        yield file


async def _write(
    db: Database, part: BatchPart, api: BatchApi, in_its_form: Callable[[Message], Message], file: Path
) -> None:
    before, between, after = api.frame
    first, lines = 0, 0
    with file.open("wb") as opened:
        opened.write(before)
        while rows := await db.read(lambda session, start=first: queries.requests(session, part.id, start, AT_A_TIME)):  # type: ignore[misc]
            requests = [(custom_id(part.id, at), in_its_form(json.loads(decompress(packed)))) for at, packed in rows]
            written = b"".join(
                (between if lines + number else b"") + api.line(name, body) for number, (name, body) in enumerate(requests)
            )
            await asyncio.to_thread(opened.write, written)
            lines, first = lines + len(rows), rows[-1][0] + 1
        opened.write(after)
