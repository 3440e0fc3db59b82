"""A world of runs on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from orchestrator.db.session import Database
from tests.manual_clock import ManualClock
from tests.service.runs.simulated_scheduler import RunWorld


@pytest.fixture
async def world(database: Database, clock: ManualClock) -> AsyncIterator[RunWorld]:
    it = RunWorld(database, clock)
    it.boot()
    yield it
    await it.engine.end_all()
