from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.service import ClusterService

StartOnCluster = Callable[..., ClusterService]


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    with cluster.namespace() as name:
        yield name


@pytest.fixture
def start_on_cluster(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[StartOnCluster]:
    """Starts services whose runners are pods in the test's namespace."""
    started: list[ClusterService] = []

    def start(**settings: object) -> ClusterService:
        service = ClusterService(tmp_path / f"data{len(started)}", cluster, namespace, **settings)  # type: ignore[arg-type]
        started.append(service)
        service.start()
        return service

    yield start
    for service in started:
        service.close()
