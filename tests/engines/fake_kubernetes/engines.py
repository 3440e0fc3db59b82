"""Kubernetes engines on a fake cluster: their configuration, and a launch that the conformance suite's program obeys."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orchestrator.engines.engine import ContainerFacts, ContainerState, LaunchRequest
from orchestrator.engines.kubernetes.config import KubeEngineConfig
from orchestrator.engines.kubernetes.engine import KubernetesEngine
from tests.engines.fake_kubernetes.cluster import NAMESPACE, FakeCluster
from tests.engines.fake_kubernetes.pods import IMAGE
from tests.engines.rigs import PROGRAM, order, request, until, until_logged

PATIENT = {"call_limit_s": 120.0, "socket_limit_s": 110.0}
"""Limits of an engine on a machine that may be busy."""


def config_for(cluster: FakeCluster, folder: Path, **changes: Any) -> KubeEngineConfig:
    values: dict[str, Any] = {
        "instance": "test",
        "owner": "we",
        "namespace": NAMESPACE,
        "kubeconfig": cluster.kubeconfig(folder),
        "require_policy": False,
        "command": (sys.executable, "-I", "-c", PROGRAM),
        "probe_targets": ("127.0.0.1:1",),
        **PATIENT,
        **changes,
    }
    return KubeEngineConfig(**values)


@dataclass
class KubernetesScene:
    """An engine, the fake cluster behind it, and what a test asks of both."""

    cluster: FakeCluster
    folder: Path
    image: str = IMAGE
    kind: str = "kubernetes"
    opened: list[KubernetesEngine] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cluster.images.present.add(IMAGE)
        self.config = config_for(self.cluster, self.folder)
        self.engine = self.open()

    def open(self, now: Callable[[], datetime] = lambda: datetime.now(UTC), **changes: Any) -> KubernetesEngine:
        """A further engine on the same cluster, as another process would have it."""
        self.opened.append(KubernetesEngine(replace(self.config, **changes), now))
        return self.opened[-1]

    def asked(self, do: str = "sleep", **changes: Any) -> LaunchRequest:
        return request(self, order(do, **changes.pop("order", {})), **changes)  # type: ignore[arg-type]

    async def running(self, do: str = "sleep", **changes: Any) -> LaunchRequest:
        """A container whose program has begun."""
        asked = self.asked(do, **changes)
        await self.engine.launch(asked)
        await self.until(asked.name, ContainerState.RUNNING)
        await until_logged(self.engine, asked.name, b"ready", 120)
        return asked

    async def until(self, name: str, state: ContainerState) -> ContainerFacts:
        return await until(self.engine, name, state, 120)

    async def close(self) -> None:
        for engine in self.opened:
            await engine.close()


@contextlib.asynccontextmanager
async def scene_on(cluster: FakeCluster, folder: Path) -> AsyncIterator[KubernetesScene]:
    scene = KubernetesScene(cluster, folder)
    try:
        yield scene
    finally:
        await scene.close()
