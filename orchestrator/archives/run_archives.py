"""Makes the archive of every ended run, stores it, and removes it when its retention ends.

The row is the queue: an archive that could not be made or stored is retried with growing delays, indefinitely. The run
itself is never changed here.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import random
import shutil
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog
from sqlmodel import Session

from orchestrator.archives import queries
from orchestrator.archives.format.contents import Contents, contents_of
from orchestrator.archives.object_store import ObjectStore, StoreError
from orchestrator.archives.retention import RetentionPolicy
from orchestrator.archives.rounds import ArchiveRounds
from orchestrator.archives.tables import ArchiveRow
from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.scheduling.leading.lease_queries import LeadershipLost
from orchestrator.system.clock import Clock

log = structlog.get_logger()

AT_ONCE = 4
PIECE = 1 << 20
DISK = "disk"
"""The location of an archive: this, or the URL scheme of the object store."""


class RunDeleted(Exception):
    """The run was deleted while its archive was being made; the archive is no longer needed."""


class RunArchives(ArchiveRounds):
    def __init__(
        self,
        db: Database,
        leadership: Leadership,
        clock: Clock,
        policy: RetentionPolicy,
        *,
        folder: Path,
        artefacts: Path,
        store: ObjectStore | None,
        has_room: Callable[[], bool],
        rng: random.Random,
    ) -> None:
        super().__init__(db, leadership, clock, policy, rng)
        self._folder, self._artefacts, self._store, self._has_room = folder, artefacts, store, has_room

    async def _store_due(self, now: datetime) -> bool:
        if not self._has_room():
            return False
        rows = await self._db.read(lambda s: queries.due(s, now, AT_ONCE))
        for row in rows:
            await self._try(row)
        return len(rows) == AT_ONCE

    def path(self, row: ArchiveRow) -> Path:
        return self._folder / row.run_id / f"{row.kind}.tar.gz"

    def open(self, row: ArchiveRow) -> int | None:
        """Opens the file on this disk: an open file can be read to its end even if it is removed meanwhile."""
        with contextlib.suppress(FileNotFoundError):
            return os.open(self.path(row), os.O_RDONLY | os.O_CLOEXEC)
        return None

    async def address(self, row: ArchiveRow) -> str | None:
        """The download URL if it is in the object store."""
        if self._store is None or row.state != queries.STORED or row.place != self._store.scheme:
            return None
        return await self._store.signed_url(row.run_id, f"{row.kind}.tar.gz")

    async def remove_stored(self, run_id: str, filename: str) -> None:
        """Removes the archive of a deleted run from the object store, if there is one."""
        if self._store is not None:
            await self._store.delete(run_id, filename)

    async def contents(self, run_id: str) -> Contents:
        """The contents that the archive has or would have."""
        return await contents_of(self._db, self._artefacts, run_id, max_bytes=self._policy.max_bytes)

    async def _try(self, row: ArchiveRow) -> None:
        try:
            if row.state == queries.WAITING or not self.path(row).exists():
                built = await self._build(row.run_id)
                row = await self._note(row.run_id, state=queries.BUILT, place=DISK, **built)
            if self._store is not None:
                await self._store.put(row.run_id, self.path(row).name, _pieces(self.path(row)))
            scheme = DISK if self._store is None else self._store.scheme
            fresh = {"error": None, "stored_at": self._clock.now()}
            await self._note(row.run_id, state=queries.STORED, place=scheme, **fresh)
            if self._store is not None:
                await asyncio.to_thread(self._remove, row)
        except (DatabaseUnavailable, LeadershipLost):
            raise
        except RunDeleted:
            await asyncio.to_thread(shutil.rmtree, self._folder / row.run_id, ignore_errors=True)
        except Exception as error:  # recorded and retried
            tries = row.tries + 1
            sentence = f"{type(error).__name__}: {error}"[:500]
            log.warning("archive not stored", action="archive_failed", run_id=row.run_id, tries=tries, error=sentence)
            with contextlib.suppress(RunDeleted):
                await self._note(row.run_id, tries=tries, not_before=self._next_try(tries), error=sentence)

    async def _build(self, run_id: str) -> dict[str, Any]:
        """Writes under a temporary name and renames the file when it is complete and synced to disk."""
        contents = await self.contents(run_id)
        target = self._folder / run_id / contents.filename
        part = target.with_name(f".{target.name}.part")
        await asyncio.to_thread(target.parent.mkdir, parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        try:
            with part.open("wb") as file:
                async for piece in contents.tar_gz():
                    digest.update(piece)
                    size += len(piece)
                    await asyncio.to_thread(file.write, piece)
                file.flush()
                await asyncio.to_thread(os.fsync, file.fileno())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        facts = {"kind": contents.kind, "grading_digest": contents.grading_digest}
        return {**facts, "size_bytes": size, "sha256": digest.hexdigest()}

    async def _note(self, run_id: str, **values: Any) -> ArchiveRow:
        def work(session: Session) -> ArchiveRow:
            row = queries.lock(session, run_id)
            if row is None:
                raise RunDeleted(run_id)
            for name, value in values.items():
                setattr(row, name, value)
            session.add(row)
            return row

        return await self._leadership.write(work)

    async def _sweep(self) -> None:
        for run_id in await self._expired(queries.RUN):
            row = await self._db.read(lambda s, run_id=run_id: queries.get(s, run_id))  # type: ignore[misc]
            in_store = self._store is not None and row is not None and row.place == self._store.scheme
            if row is None or not (in_store or row.place == DISK):
                continue
            try:
                if self._store is not None and in_store:
                    await self._store.delete(run_id, f"{row.kind}.tar.gz")
                await asyncio.to_thread(self._remove, row)
            except (StoreError, OSError) as error:
                log.warning("archive not removed", action="archive_kept", run_id=run_id, error=str(error))
                return  # until the next sweep
            with contextlib.suppress(RunDeleted):
                await self._note(run_id, state=queries.EXPIRED, place=None)
            log.info("archive removed", action="archive_expired", run_id=run_id)

    def _remove(self, row: ArchiveRow) -> None:
        path = self.path(row)
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty, or already removed
            path.parent.rmdir()


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece
