"""The Kubernetes engine on the fake cluster, made ready for the conformance suite."""

from __future__ import annotations

from dataclasses import dataclass, replace

from orchestrator.engines.engine import ContainerState, Engine, LaunchRequest
from orchestrator.engines.kubernetes.manifest import pod
from tests.engines.fake_kubernetes.api_server.requests import Request
from tests.engines.fake_kubernetes.engines import KubernetesScene
from tests.engines.fake_kubernetes.pods import PODS
from tests.engines.rigs import Abilities

SECOND_S = 0.25
"""How long a second of the cluster takes: the suite wants to see that a grace passes."""


@dataclass
class FakeKubernetesRig(KubernetesScene):
    abilities: Abilities = Abilities(  # noqa: RUF009 -- it is frozen
        pauses=False, counts=False, unstarted=ContainerState.WAITING, killed=frozenset({137, 143}), isolated=True
    )

    def sibling(self, instance: str) -> Engine:
        return self.open(instance=f"test-{instance}")

    def namesake(self, owner: str) -> Engine:
        return self.open(owner=owner)

    def restarted(self) -> Engine:
        return self.open()

    async def pause(self, name: str) -> None:
        raise AssertionError("a cluster cannot pause a pod")

    async def create_only(self, request: LaunchRequest) -> None:
        """The pod without its secret."""
        await self.engine.prepare()
        owner_uid = str(self.engine._owner_uid)
        manifest = pod(request, replace(self.config, owner=None), owner_uid=owner_uid, address=None, secret=request.name)
        manifest["metadata"]["ownerReferences"][0]["name"] = self.config.owner_name
        token = f"Bearer {self.cluster.access.token}"
        answer = self.cluster.api.answer(Request("POST", PODS, body=manifest, authorization=token))
        assert answer.status == 201, answer.body

    async def vanish(self, name: str) -> None:
        self.cluster.delete_pod(name, 0)
