"""The task runner of the documents, run as it is printed there."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.service.tasks.conftest import PROVIDER, Tasks

if TYPE_CHECKING:
    from tests.served import Service

pytestmark = pytest.mark.anyio
SCRIPT = Path(__file__).parents[3] / "docs" / "examples" / "task-runner.sh"


def test_it_has_forty_lines_and_no_python() -> None:
    text = SCRIPT.read_text()
    assert len(text.splitlines()) <= 40
    assert "python" not in text


async def test_the_shell_example_runs_command_benchmarks(service: Service, tasks: Tasks) -> None:
    good = await tasks.new(
        "echo $GREETING, run $((6 * 7))", env={"GREETING": 'say "hi"', "lease": "no lease", "status": "done"}
    )
    bad = await tasks.new("echo broken; exit 3", repeats=1)
    slow = await tasks.new("sleep 30", repeats=1, timeout_s=0.2)
    env = {
        "PATH": os.environ["PATH"],
        "BENCHYARD_URL": service.url,
        "BENCHYARD_TOKEN": tasks.token,
        "PROVIDER": PROVIDER,
        "INSTANCE_TYPE": "standard-1",
    }
    process = await asyncio.create_subprocess_exec(
        "sh", str(SCRIPT), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=env
    )
    async with asyncio.timeout(120):
        said = (await process.communicate())[0].decode()
    assert process.returncode == 0, said
    assert "no task is left" in said
    run = await service.run(good)
    assert run["status"] == "completed", said
    told = (await service.client.get(f"/api/commands/{good}")).json()
    assert told["self_reported"] is True
    assert [(each["outcome"], each["wall_s"] > 0) for each in told["repeats"]] == [("passed", True)] * 2
    output = await service.client.get(f"/api/container-runs/{good}/artefacts/output.txt")
    assert output.text == 'say "hi", run 42\n' * 2
    assert (await service.run(bad))["reason"] == "command_failed"
    assert (await service.run(slow))["outcomes"] == {"time_limit": 1}
