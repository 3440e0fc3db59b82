"""One service per module, for tests that leave nothing behind which another would notice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import settings_in
from tests.served import Service, served


@pytest.fixture(scope="module")
async def shared_service(
    tmp_path_factory: pytest.TempPathFactory, data_template: Path, anyio_backend: str
) -> AsyncIterator[Service]:
    async with served(settings_in(tmp_path_factory.mktemp("shared"), data_template)()) as it:
        yield it
        await it.engine.end_all()
