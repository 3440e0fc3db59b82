"""schemathesis over the OpenAPI document, signed in and not: no 5xx, whatever is sent."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.served import TOKEN, Service

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.mark.parametrize("signed_in", [True, False], ids=["signed in", "stranger"])
async def test_no_5xx(service: Service, signed_in: bool, tmp_path: Path) -> None:
    arguments = [
        "run",
        f"{service.url}/openapi.json",
        "--checks=not_a_server_error",
        "--exclude-path-regex=(/api/events|/stream|/readyz)$",
        "--phases=examples,coverage,fuzzing",
        f"--max-examples={15 if signed_in else 2}",
        "--seed=1",
        "--max-time=60",
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
