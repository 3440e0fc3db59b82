"""Schedules on both databases, without and with the service over HTTP; for alerts and the leaderboard as well."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.db.session import Database
from tests.manual_clock import ManualClock
from tests.service.schedules.simulated_schedules import ScheduleWorld

if TYPE_CHECKING:
    from orchestrator.settings import Settings
    from tests.served import Service


@pytest.fixture
def world(database: Database, clock: ManualClock, tmp_path: Path) -> ScheduleWorld:
    return ScheduleWorld(database, clock, tmp_path)


@pytest.fixture
async def service(
    new_settings: Callable[..., Settings], migrated_database_url: str, dialect: str, anyio_backend: str
) -> AsyncIterator[Service]:
    """The whole service over HTTP, once on each database; webhooks may go to this machine."""
    from tests.served import served

    where = {"database_url": migrated_database_url} if dialect == "postgresql" else {}
    async with served(new_settings(webhook_allow="127.0.0.0/8, localhost", **where)) as it:
        yield it
        await it.engine.end_all()
