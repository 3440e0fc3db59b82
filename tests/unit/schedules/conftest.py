"""A world of schedules on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.db.session import Database
from tests.manual_clock import ManualClock
from tests.unit.schedules.schedule_world import ScheduleWorld


@pytest.fixture
def world(database: Database, clock: ManualClock, tmp_path: Path) -> ScheduleWorld:
    return ScheduleWorld(database, clock, tmp_path)
