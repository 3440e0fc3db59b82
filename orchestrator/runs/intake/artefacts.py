"""Files that runners upload: streamed to the data directory under checked names, limited in size, never unpacked."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.errors import TooLarge
from orchestrator.runs import queries as run_queries
from orchestrator.runs.intake.authentication import Turns
from orchestrator.runs.tables import Artefact, Attempt
from orchestrator.system.clock import Clock

MAX_FILES = 100


class ArtefactStore:
    def __init__(self, root: Path, db: Database, clock: Clock, *, max_bytes: int, run_bytes: int) -> None:
        """`max_bytes` limits one file, `run_bytes` all files of a run together."""
        self._root = root
        self._db = db
        self._clock = clock
        self._max_bytes = max_bytes
        self._run_bytes = run_bytes
        self._turns = Turns()

    def path(self, run_id: str, name: str) -> Path:
        return self._root / run_id / name

    async def store(self, attempt: Attempt, name: str, chunks: AsyncIterator[bytes]) -> None:
        """Write to a temporary name, then rename and record; a second upload replaces the first. Uploads of one run are
        serialised, so that the size limit holds for concurrent ones too."""
        async with self._turns.turn(attempt.run_id):
            await self._store(attempt, name, chunks, await self._room(attempt.run_id, name))

    async def _room(self, run_id: str, name: str) -> int:
        """The maximum size in bytes of the run's next file."""
        others = [row for row in await self._db.read(lambda s: run_queries.artefacts(s, run_id)) if row.name != name]
        if len(others) >= MAX_FILES:
            raise TooLarge(f"a run may store at most {MAX_FILES} artefacts")
        return min(self._max_bytes, self._run_bytes - sum(row.size_bytes for row in others))

    async def _store(self, attempt: Attempt, name: str, chunks: AsyncIterator[bytes], room: int) -> None:
        target = self.path(attempt.run_id, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{name}.{attempt.number}.part")
        digest, size = hashlib.sha256(), 0
        try:
            with temporary.open("wb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > room:
                        raise TooLarge(
                            f"an artefact may have {self._max_bytes} bytes, those of a run {self._run_bytes} together"
                        )
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
