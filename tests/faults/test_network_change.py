"""A runner whose container comes back with another address: its old connections are dead, and nobody tells it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.counting_provider import CountingProvider
from tests.faults.images import RUNNER
from tests.faults.killing import MODEL, add_model
from tests.faults.service import Service, docker, wait_for

pytestmark = [pytest.mark.engine, pytest.mark.slow]
PROBLEMS = 6
WITHIN_S = 200
"""Calls used to wait for 600 s, their time limit, on connections that nobody answers."""


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingProvider]:
    with CountingProvider(tmp_path / "provider.log", latency_s=0.1) as it:
        monkeypatch.setenv("OPENAI_BASE_URL", it.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        yield it


def address(container: str, network: str) -> str:
    return docker("inspect", "--format", f'{{{{(index .NetworkSettings.Networks "{network}").IPAddress}}}}', container)


def move(container: str, network: str) -> None:
    """The container gets another address in the same network: somebody else has the old one for a moment."""
    before = address(container, network)
    docker("network", "disconnect", network, container)
    other = docker("run", "-d", "--rm", "--network", network, "--entrypoint", "sleep", RUNNER, "600")
    try:
        assert address(other, network) == before
        docker("network", "connect", network, container)
        assert address(container, network) not in ("", before)
    finally:
        docker("rm", "-f", other, check=False)


def test_calls_under_way_go_on_and_are_paid_once(provider: CountingProvider, tmp_path: Path) -> None:
    service = Service(tmp_path / "data", lease_s=60, suspect_s=60)
    try:
        service.start()
        add_model(service)
        provider.hold()
        run_id = service.submit(str(MODEL["slug"]), PROBLEMS, concurrency=3, benchmarks=["sample"])
        wait_for(lambda: len(provider.questions()) >= 3, 180, "calls are under way")
        move(service.container(run_id), service.network)
        provider.go()
        run = service.wait_status(run_id, "completed", within_s=WITHIN_S)
        assert run["attempt"] == 1
        assert len(provider.questions()) == PROBLEMS
    finally:
        service.close()
