"""Puts the keeper of archives together and has it do its rounds."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from orchestrator.archives.keeper import ArchiveKeeper, KeepPolicy
from orchestrator.archives.object_store import ObjectStore
from orchestrator.archives.presigned import Bucket
from orchestrator.clock import Clock
from orchestrator.db.session import Database
from orchestrator.runs.leadership import Leadership
from orchestrator.settings import Settings


@asynccontextmanager
async def open_archives(
    db: Database,
    leadership: Leadership,
    clock: Clock,
    settings: Settings,
    data_dir: Path,
    *,
    has_room: Callable[[], bool],
    rng: random.Random,
) -> AsyncIterator[ArchiveKeeper]:
    bucket = bucket_of(settings)
    store = ObjectStore(bucket, clock) if bucket is not None else None
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
    rounds = asyncio.create_task(keeper.run())
    try:
        yield keeper
    finally:
        rounds.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await rounds
        if store is not None:
            await store.close()


def bucket_of(settings: Settings) -> Bucket | None:
    if settings.s3_bucket is None:
        return None
    if settings.s3_access_key_id is None or settings.s3_secret_access_key is None:
        raise ValueError("BENCHYARD_S3_BUCKET needs BENCHYARD_S3_ACCESS_KEY_ID and BENCHYARD_S3_SECRET_ACCESS_KEY as well")
    return Bucket(
        endpoint=settings.s3_endpoint or f"https://s3.{settings.s3_region}.amazonaws.com",
        name=settings.s3_bucket,
        region=settings.s3_region,
        key_id=settings.s3_access_key_id,
        secret=settings.s3_secret_access_key.get_secret_value(),
        prefix=settings.s3_prefix,
    )
