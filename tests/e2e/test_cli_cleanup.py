"""What is removed from a real engine, and what is not: by label, in every state."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator

import pytest

from orchestrator.engines.docker.cleanup import Belongings, DockerCleanup
from tests.faults.service import pause

pytestmark = [pytest.mark.engine]

IMAGE = "benchyard-runner:latest"


def docker(*words: str) -> str:
    return subprocess.run(["docker", *words], capture_output=True, text=True, timeout=600, check=True).stdout.strip()


@pytest.fixture
def api() -> Iterator[DockerCleanup]:
    it = DockerCleanup(None)
    yield it
    it.close()


def test_one_instance_goes_and_another_stays(api: DockerCleanup) -> None:
    ours, theirs = (f"sweep-{uuid.uuid4().hex[:8]}" for _ in range(2))
    for name in (ours, theirs):
        label = f"benchyard.instance={name}"
        docker("network", "create", "--internal", "--label", label, name)
        docker("volume", "create", "--label", label, name)
        for state in ("created", "running", "paused", "exited"):
            docker(
                "create",
                "--label",
                label,
                "--network",
                name,
                "--name",
                f"{name}-{state}",
                "--entrypoint",
                "sleep",
                IMAGE,
                "3600",
            )
        for state in ("running", "paused", "exited"):
            docker("start", f"{name}-{state}")
        pause(f"{name}-paused")
        docker("kill", f"{name}-exited")
    try:
        found = api.find(ours)
        assert found.containers == tuple(f"{ours}-{state}" for state in ("created", "exited", "paused", "running"))
        assert (found.networks, found.volumes) == ((ours,), (ours,))
        everything = api.find()
        assert {ours, theirs} <= set(everything.networks)

        api.sweep(found)
        api.sweep(found)  # gone already is success
        assert api.find(ours) == Belongings()
        assert len(api.find(theirs).containers) == 4
    finally:
        for name in (ours, theirs):
            api.sweep(api.find(name))
    assert api.find(theirs) == Belongings()


def test_images_are_found_or_not(api: DockerCleanup) -> None:
    assert api.has_image(IMAGE)
    assert not api.has_image(f"benchyard-none-{uuid.uuid4().hex}")
    assert api.host().version
