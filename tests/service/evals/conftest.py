"""The service on both databases, for what their locks and types may tell apart."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from orchestrator.settings import Settings
from tests.served import Service, served


@pytest.fixture
async def either_service(new_settings: Callable[..., Settings], migrated_database_url: str) -> AsyncIterator[Service]:
    """On SQLite, then on PostgreSQL."""
    async with served(new_settings(DATABASE_URL=migrated_database_url)) as it:
        yield it
        await it.engine.end_all()
