"""The Kubernetes engine, made ready for the conformance suite: every rig has a namespace of its own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

from orchestrator.engines.engine import ContainerState, Engine, LaunchRequest
from orchestrator.engines.kubernetes.config import KubeEngineConfig
from orchestrator.engines.kubernetes.engine import KubernetesEngine
from orchestrator.engines.kubernetes.manifest import pod
from tests.engines.rigs import PROGRAM, Abilities
from tests.kubernetes.cluster import Cluster

PATIENT = {"call_limit_s": 300.0, "socket_limit_s": 290.0}
"""Limits of an engine on a machine that may be busy."""


@dataclass
class KubernetesRig:
    cluster: Cluster
    namespace: str
    kind: str = "kubernetes"
    abilities: Abilities = Abilities(  # noqa: RUF009 -- it is frozen
        pauses=False,
        counts=False,
        unstarted=ContainerState.WAITING,
        killed=frozenset({137, 143}),
        isolated=True,
    )
    opened: list[KubernetesEngine] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.image = self.cluster.image
        self.config = KubeEngineConfig(
            instance="test",
            owner="we",
            namespace=self.namespace,
            kubeconfig=self.cluster.kubeconfig,
            require_policy=False,
            command=("python3", "-c", PROGRAM),
            **PATIENT,  # type: ignore[arg-type]
        )
        self.engine = self._open(self.config)

    def _open(self, config: KubeEngineConfig) -> KubernetesEngine:
        self.opened.append(KubernetesEngine(config))
        return self.opened[-1]

    def sibling(self, instance: str) -> Engine:
        return self._open(replace(self.config, instance=f"test-{instance}"))

    def namesake(self, owner: str) -> Engine:
        return self._open(replace(self.config, owner=owner))

    def restarted(self) -> Engine:
        return self._open(self.config)

    async def pause(self, name: str) -> None:
        raise AssertionError("a cluster cannot pause a pod")

    async def create_only(self, request: LaunchRequest) -> None:
        """The pod without its secret."""
        await self.engine.prepare()
        anonymous = replace(self.config, owner=None)
        owner = self.cluster.kubectl(
            "get", "configmap", "-n", self.namespace, self.config.owner_name, "-o", "jsonpath={.metadata.uid}"
        )
        manifest = pod(request, anonymous, owner_uid=owner, address=None, secret=request.name)
        manifest["metadata"]["ownerReferences"][0]["name"] = self.config.owner_name
        await asyncio.to_thread(
            self.cluster.apply, manifest | {"metadata": manifest["metadata"] | {"namespace": self.namespace}}
        )

    async def vanish(self, name: str) -> None:
        delete = ("delete", "pod", "-n", self.namespace, name, "--grace-period=0", "--force")
        await asyncio.to_thread(self.cluster.kubectl, *delete)

    async def close(self) -> None:
        for engine in self.opened:
            for facts in await engine.list():
                await engine.remove(facts.name)
            await engine.teardown()
            await engine.close()
