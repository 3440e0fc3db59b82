"""Opens the archives of runs and batches and runs their loops."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.archives.batch_archives import BatchArchives, BatchSnapshot
from orchestrator.archives.object_store import open_store
from orchestrator.archives.retention import RetentionPolicy
from orchestrator.archives.run_archives import RunArchives
from orchestrator.db.session import Database
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock


@dataclass(frozen=True)
class Archives:
    runs: RunArchives
    batches: BatchArchives | None
    """None without an object store."""


@asynccontextmanager
async def open_archives(
    db: Database,
    leadership: Leadership,
    clock: Clock,
    settings: Settings,
    data_dir: Path,
    *,
    describe_batch: Callable[[str], Awaitable[BatchSnapshot]],
    has_room: Callable[[], bool],
    rng: random.Random,
    quiet: bool = False,
) -> AsyncIterator[Archives]:
    """In a quiet installation (a copy of another one), nothing is written to or removed from the object store that the two
    share.
    """
    store = open_store(settings)
    policy = RetentionPolicy(
        settings.archive_max_bytes, settings.archive_retention_days or None, settings.archive_total_bytes or None
    )
    runs = RunArchives(
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
        batches = BatchArchives(
            db, leadership, clock, policy, store, describe=describe_batch, contents=runs.contents, rng=rng
        )
    active = () if quiet and store is not None else (runs, batches)
    tasks = [asyncio.create_task(archives.run()) for archives in active if archives is not None]
    try:
        yield Archives(runs, batches)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
