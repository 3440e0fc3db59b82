"""Puts the keepers of archives together and has them do their rounds."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.archives.batch_keeper import BatchAsItIs, BatchKeeper
from orchestrator.archives.keeper import ArchiveKeeper
from orchestrator.archives.object_store import open_store
from orchestrator.archives.retention import KeepPolicy
from orchestrator.archives.rounds import keep_on
from orchestrator.db.session import Database
from orchestrator.runs.scheduling.leadership import Leadership
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock


@dataclass(frozen=True)
class Archives:
    runs: ArchiveKeeper
    batches: BatchKeeper | None
    """None where there is no object store."""


@asynccontextmanager
async def open_archives(
    db: Database,
    leadership: Leadership,
    clock: Clock,
    settings: Settings,
    data_dir: Path,
    *,
    describe_batch: Callable[[str], Awaitable[BatchAsItIs]],
    has_room: Callable[[], bool],
    rng: random.Random,
    quiet: bool = False,
) -> AsyncIterator[Archives]:
    """In a quiet installation, a copy of another one, nothing is written to or removed from the object store that the two
    share."""
    store = open_store(settings)
    policy = KeepPolicy(
        settings.archive_max_bytes, settings.archive_retention_days or None, settings.archive_total_bytes or None
    )
    keeper = ArchiveKeeper(
        db,
        leadership,
        clock,
        policy,
        folder=data_dir / "archives",
        artefacts=data_dir / "artefacts",
        store=store,
        has_room=has_room,
        rng=rng,
    )
    batches = None
    if store is not None:
        contents = keeper.contents
        batches = BatchKeeper(db, leadership, clock, policy, store, describe=describe_batch, contents=contents, rng=rng)
    keepers = () if quiet and store is not None else (keeper, batches)
    tasks = [asyncio.create_task(keep_on(each.round)) for each in keepers if each is not None]
    try:
        yield Archives(keeper, batches)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
