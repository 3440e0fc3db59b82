"""The public benchmark files, which are not part of the project: BENCHYARD_TEST_DATA names the directory that has them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from runner.sandbox.executor import Executor
from tests.uids import own_uid_base

VARIABLE = "BENCHYARD_TEST_DATA"
Find = Callable[[str], Path]


@pytest.fixture(scope="session")
def published() -> Find:
    """The path of a public file. A test whose file is not there is skipped and named with the reason."""
    named = os.environ.get(VARIABLE)
    folder = Path(named or "")

    def find(name: str) -> Path:
        if not named:
            pytest.skip(f"{VARIABLE} is not set")
        if not folder.is_dir():
            pytest.fail(f"{VARIABLE} names {folder}, which is not a directory")
        path = folder / name
        if not path.is_file():
            pytest.skip(f"{path} is not there")
        return path

    return find


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def executor() -> AsyncIterator[Executor]:
    async with Executor.open(slots=2, uid_base=own_uid_base()) as opened:
        yield opened
