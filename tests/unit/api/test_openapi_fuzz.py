"""schemathesis over the OpenAPI document, signed in and not, on both databases: no 5xx, whatever is sent."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.settings import Settings
from tests.served import TOKEN, Service, served

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.mark.parametrize("signed_in", [True, False], ids=["signed in", "stranger"])
async def test_no_5xx(
    migrated_database_url: str, dialect: str, new_settings: Callable[..., Settings], signed_in: bool, tmp_path: Path
) -> None:
    if not signed_in and dialect == "postgresql":
        return  # a stranger never gets as far as the database
    async with served(new_settings(DATABASE_URL=migrated_database_url)) as service:
        await fuzz(service, signed_in, tmp_path, seconds=35 if signed_in else 15)
        await service.engine.end_all()


async def fuzz(service: Service, signed_in: bool, tmp_path: Path, seconds: int) -> None:
    arguments = [
        "run",
        f"{service.url}/openapi.json",
        "--checks=not_a_server_error",
        "--exclude-path-regex=(/api/events|/stream|/readyz)$",
        "--phases=examples,coverage,fuzzing",
        f"--max-examples={15 if signed_in else 2}",
        "--seed=1",
        f"--max-time={seconds}",
        "--request-timeout=20",
        "--no-color",
        "--warnings=off",
        "--continue-on-failure",
        "--generation-database=none",
        *(["-H", f"Authorization: Bearer {TOKEN}"] if signed_in else []),
    ]
    command = Path(sys.executable).parent / "schemathesis"
    process = await asyncio.create_subprocess_exec(
        command,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=tmp_path,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), 200)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0, output.decode()[-6000:]
    assert b"generated" in output
