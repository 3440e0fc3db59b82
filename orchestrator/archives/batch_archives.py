"""Uploads the archive of every ended batch to the object store and removes it when its retention ends.

The archive is streamed from the rows during the upload, so it needs no disk space, whatever its size. Without an object
store nothing is kept: a batch archive is made during its download. It becomes outdated when a member is retried.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from sqlmodel import Session

from orchestrator.archives import queries
from orchestrator.archives.format.batch_archive import BatchMember, batch_tar_gz
from orchestrator.archives.format.contents import Contents
from orchestrator.archives.object_store import ObjectStore, StoreError, batch_folder
from orchestrator.archives.retention import RetentionPolicy
from orchestrator.archives.rounds import ArchiveRounds
from orchestrator.archives.tables import BatchArchiveRow
from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.scheduling.leading.lease_queries import LeadershipLost
from orchestrator.system.clock import Clock

log = structlog.get_logger()

FILENAME = "batch.tar.gz"


@dataclass(frozen=True)
class BatchSnapshot:
    """The content of `batch.json`, and the members, some of which may still be running. `runs` also counts runs replaced by
    retries.
    """

    about: dict[str, Any]
    members: Sequence[BatchMember]
    runs: int


class BatchArchives(ArchiveRounds):
    def __init__(
        self,
        db: Database,
        leadership: Leadership,
        clock: Clock,
        policy: RetentionPolicy,
        store: ObjectStore,
        *,
        describe: Callable[[str], Awaitable[BatchSnapshot]],
        contents: Callable[[str], Awaitable[Contents]],
        rng: random.Random,
    ) -> None:
        super().__init__(db, leadership, clock, policy, rng)
        self._store, self._describe, self._contents = store, describe, contents

    async def _store_due(self, now: datetime) -> bool:
        batch_id = await self._db.read(lambda s: queries.due_batch(s, now, self._policy.oldest(now)))
        if batch_id is not None:
            await self._try(batch_id)
        return batch_id is not None

    async def address(self, batch_id: str, runs: int) -> str | None:
        """The URL of the archive if the object store has an up-to-date one."""
        row = await self._db.read(lambda s: queries.get_batch(s, batch_id))
        if row is None or row.state != queries.STORED or row.runs != runs:
            return None
        return await self._store.signed_url(batch_folder(batch_id), FILENAME)

    async def _try(self, batch_id: str) -> None:
        digest, size = hashlib.sha256(), 0

        async def counted(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
            nonlocal size
            async for piece in pieces:
                digest.update(piece)
                size += len(piece)
                yield piece

        try:
            batch = await self._describe(batch_id)
            pieces = batch_tar_gz(batch.about, batch.members, self._contents)
            await self._store.put(batch_folder(batch_id), FILENAME, counted(pieces))
            facts = {"runs": batch.runs, "size_bytes": size, "sha256": digest.hexdigest(), "stored_at": self._clock.now()}
            await self._note(batch_id, state=queries.STORED, tries=0, error=None, **facts)
        except (DatabaseUnavailable, LeadershipLost):
            raise
        except Exception as error:  # recorded and retried
            row = await self._db.read(lambda s: queries.get_batch(s, batch_id))
            tries = (row.tries if row else 0) + 1
            sentence = f"{type(error).__name__}: {error}"[:500]
            log.warning(
                "batch archive not stored", action="batch_archive_failed", batch_id=batch_id, tries=tries, error=sentence
            )
            await self._note(batch_id, tries=tries, not_before=self._next_try(tries), error=sentence)

    async def _note(self, batch_id: str, **values: Any) -> None:
        now = self._clock.now()

        def work(session: Session) -> None:
            row = queries.lock_batch(session, batch_id) or BatchArchiveRow(batch_id=batch_id, not_before=now)
            for name, value in values.items():
                setattr(row, name, value)
            if row.runs != queries.runs_of_batch(session, batch_id):
                row.state = queries.WAITING  # a member was retried meanwhile
            session.add(row)

        await self._leadership.write(work)

    async def _sweep(self) -> None:
        for batch_id in await self._expired(queries.BATCH):
            try:
                await self._store.delete(batch_folder(batch_id), FILENAME)
            except StoreError as error:
                log.warning("batch archive not removed", action="batch_archive_kept", batch_id=batch_id, error=str(error))
                return  # until the next sweep
            await self._note(batch_id, state=queries.EXPIRED)
            log.info("batch archive removed", action="batch_archive_expired", batch_id=batch_id)
