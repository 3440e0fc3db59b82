"""Rigs for the engine tests. What a test needs and cannot have fails it; nothing is skipped."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.engines.docker.options import DockerEngineConfig
from tests.engines.fake_kubernetes.cluster import FakeCluster
from tests.engines.fake_kubernetes.rig import SECOND_S, FakeKubernetesRig
from tests.engines.rigs import PATIENT, PROGRAM, DockerRig, FakeRig, ProcessRig, Rig
from tests.kubernetes.cluster import Cluster

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


RUNNER_PORT = free_port()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def base_image() -> str:
    done = subprocess.run([ROOT / "scripts/base-image"], capture_output=True, text=True, timeout=300, check=True)
    return done.stdout.strip()


def _network(name: str, *, host_mode: bool) -> Iterator[DockerEngineConfig]:
    config = DockerEngineConfig(
        instance=f"{name}-{os.getpid()}",
        owner="we",
        network=f"benchyard-{name}-{os.getpid()}",
        host_mode=host_mode,
        runner_port=RUNNER_PORT if host_mode else None,
        command=("python3", "-c", PROGRAM),
        **PATIENT,  # type: ignore[arg-type]
    )
    yield config

    async def clean() -> None:
        engine = DockerEngine(config)
        for facts in await engine.list():
            await engine.remove(facts.name)
        await engine.teardown()
        await engine.close()

    asyncio.run(clean())


@pytest.fixture(scope="session")
def host_config() -> Iterator[DockerEngineConfig]:
    yield from _network("test-host", host_mode=True)


@pytest.fixture(scope="session")
def container_config() -> Iterator[DockerEngineConfig]:
    yield from _network("test-inner", host_mode=False)


@pytest.fixture
async def docker_rig(host_config: DockerEngineConfig, base_image: str) -> AsyncIterator[DockerRig]:
    rig = DockerRig(host_config, base_image)
    yield rig
    await rig.close()


@pytest.fixture
async def inner_rig(container_config: DockerEngineConfig, base_image: str) -> AsyncIterator[DockerRig]:
    rig = DockerRig(replace(container_config), base_image)
    yield rig
    await rig.close()


@pytest.fixture
async def process_rig(tmp_path: Path) -> AsyncIterator[ProcessRig]:
    rig = ProcessRig(tmp_path / "process-engine")
    yield rig
    await rig.close()


@pytest.fixture
async def fake_rig() -> AsyncIterator[FakeRig]:
    rig = FakeRig()
    yield rig
    await rig.close()


@pytest.fixture
async def kubernetes_rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    from tests.engines.kubernetes_rig import KubernetesRig

    cluster: Cluster = request.getfixturevalue("cluster")
    with cluster.namespace() as namespace:
        rig = KubernetesRig(cluster, namespace)
        yield rig
        await rig.close()


@pytest.fixture
async def fake_kubernetes_rig(tmp_path: Path) -> AsyncIterator[Rig]:
    with FakeCluster(second_s=SECOND_S) as cluster:
        rig = FakeKubernetesRig(cluster, tmp_path)
        yield rig
        await rig.close()


ON_ONE_MACHINE = ["fake", "process", pytest.param("docker", marks=pytest.mark.engine)]


@pytest.fixture(params=[*ON_ONE_MACHINE, "fake_kubernetes", pytest.param("kubernetes", marks=pytest.mark.kubernetes)])
def rig(request: pytest.FixtureRequest) -> Rig:
    found: Rig = request.getfixturevalue(f"{request.param}_rig")
    return found


@pytest.fixture(params=ON_ONE_MACHINE)
def pausing_rig(request: pytest.FixtureRequest) -> Rig:
    """An engine whose containers somebody can pause."""
    found: Rig = request.getfixturevalue(f"{request.param}_rig")
    assert found.abilities.pauses
    return found
