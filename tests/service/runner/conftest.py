"""Fixtures for the runner's tests: a real server that plays the orchestrator, and runners as real processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.service.runner.fake_orchestrator import FakeOrchestrator, Stage, StartRunner, serving


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    """One server for all tests; each test puts its own orchestrator on."""
    stage = Stage()
    with serving(stage) as url:
        stage.url = url
        yield stage


@pytest.fixture
def orchestrator(stage: Stage) -> FakeOrchestrator:
    fake = FakeOrchestrator()
    fake.url, stage.app = stage.url, fake.app()
    return fake


@pytest.fixture
def start_runner() -> Iterator[StartRunner]:
    """Starts `python -m runner` with a boot line; what is still alive at the end of the test is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(boot_line: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "runner"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdin is not None
        process.stdin.write(boot_line + "\n")
        process.stdin.flush()
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
