"""Files that runners leave: streamed to the data directory, capped, named by us, never unpacked."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from sqlmodel import Session

from orchestrator.clock import Clock
from orchestrator.db.session import Database
from orchestrator.db.tables import Artefact, Attempt
from orchestrator.errors import TooLarge


class ArtefactStore:
    def __init__(self, root: Path, db: Database, clock: Clock, max_bytes: int) -> None:
        self._root = root
        self._db = db
        self._clock = clock
        self._max_bytes = max_bytes

    def path(self, run_id: str, name: str) -> Path:
        return self._root / run_id / name

    async def store(self, attempt: Attempt, name: str, chunks: AsyncIterator[bytes]) -> None:
        """Write to a temporary name, then rename and record; a second upload replaces the first."""
        target = self.path(attempt.run_id, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{name}.{attempt.number}.part")
        digest, size = hashlib.sha256(), 0
        try:
            with temporary.open("wb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > self._max_bytes:
                        raise TooLarge(f"an artefact may have at most {self._max_bytes} bytes")
                    digest.update(chunk)
                    await asyncio.to_thread(file.write, chunk)
                file.flush()
                await asyncio.to_thread(os.fsync, file.fileno())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        row = Artefact(
            run_id=attempt.run_id,
            name=name,
            attempt=attempt.number,
            size_bytes=size,
            sha256=digest.hexdigest(),
            created_at=self._clock.now(),
        )

        def record(session: Session) -> None:
            session.merge(row)

        await self._db.write(record)
