"""A sandbox to judge in."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from runner.sandbox.executor import Executor
from tests.uids import own_uid_base


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def executor() -> AsyncIterator[Executor]:
    async with Executor.open(slots=2, uid_base=own_uid_base()) as opened:
        yield opened
