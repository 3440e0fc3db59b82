"""A real Benchyard on this machine whose runners are pods of a cluster, seen from outside with `kubectl`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.faults.service import Service, wait_for
from tests.kubernetes.cluster import Cluster

EVERY_S = 0.3
"""How often to ask the cluster: each question is a process."""


class ClusterService(Service):
    def __init__(
        self, data: Path, cluster: Cluster, namespace: str, *, database_url: str | None = None, **settings: object
    ) -> None:
        values: dict[str, object] = {
            "engine": "kubernetes",
            "runner_image": cluster.image,
            "runner_host": cluster.host,
            "kube_runner_address": cluster.host,
            "kube_namespace": namespace,
            "kube_config": cluster.kubeconfig,
            "kube_require_policy": "false",  # the network of scripts/kubernetes-here enforces none
            **settings,
        }
        super().__init__(data, database_url=database_url, **values)
        self.cluster, self.namespace = cluster, namespace

    def clean(self) -> None:
        """Everything is in its namespace, which the caller removes."""

    def pods(self, run_id: str | None = None) -> list[dict[str, Any]]:
        label = f"benchyard.run={run_id}" if run_id else f"benchyard.instance={self.instance},benchyard.run"
        return self.cluster.objects("pods", self.namespace, label)

    def containers(self, run_id: str | None = None, *, all_states: bool = False) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.pods(run_id) if all_states or runs(pod)]

    def node(self, run_id: str) -> str:
        """Where the run's newest pod runs."""
        name: str = wait_for(lambda: self._node(run_id), 180, f"run {run_id} has a place", every_s=EVERY_S)
        return name

    def _node(self, run_id: str) -> str | None:
        placed = [pod for pod in self.pods(run_id) if runs(pod)]
        return str(placed[-1]["spec"]["nodeName"]) if placed else None

    def secrets(self) -> list[str]:
        """The boot lines that are still in the cluster."""
        found = self.cluster.objects("secrets", self.namespace, f"benchyard.instance={self.instance}")
        return [secret["metadata"]["name"] for secret in found]

    def nothing_left(self, within_s: float = 60) -> None:
        def left() -> list[str]:
            return self.containers(all_states=True) + self.secrets()

        wait_for(lambda: not left(), within_s, lambda: f"every pod and secret is removed: {left()}", every_s=EVERY_S)


def runs(pod: dict[str, Any]) -> bool:
    statuses = pod["status"].get("containerStatuses") or []
    return any("running" in (status.get("state") or {}) for status in statuses)
