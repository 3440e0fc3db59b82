"""Real benchmark data, read from beside the project, and a sandbox to judge in."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.datasets.formats.problem import Found
from orchestrator.datasets.formats.source import Source
from orchestrator.datasets.sources import FORMATS
from runner.sandbox.executor import Executor

SHARED = Path(os.environ.get("BENCHYARD_SHARED_DATA", Path(__file__).parents[4] / "shared" / "data"))


@pytest.fixture(scope="session")
def shared() -> Path:
    assert SHARED.is_dir(), f"the real benchmark data is not at {SHARED}; set BENCHYARD_SHARED_DATA"
    return SHARED


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def executor() -> AsyncIterator[Executor]:
    async with Executor.open(slots=2, uid_base=64_000) as opened:
        yield opened


def records(benchmark: str, path: Path) -> dict[str, dict[str, Any]]:
    """The problems of a public file, as a pack would hold them."""
    return {item.entry.id: item.record for item in FORMATS[benchmark].read(Source(path)) if isinstance(item, Found)}
