"""Finds pods whose boot line will never come, because the secret that holds it does not exist.

An orchestrator that dies between creating a pod and creating its secret leaves such a pod, and so does an operator who
deletes a secret too early. The kubelet waits for the secret and does not say so in the pod's status, and our account may
not read secrets. It may create them, so we ask the API server whether it would: a name that is taken means that the secret
exists. Nothing is created.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from orchestrator.engines.bounded_threads import Deadline
from orchestrator.engines.engine import ContainerFacts, ContainerState, EngineError
from orchestrator.engines.kubernetes.api import KubeApi
from orchestrator.engines.kubernetes.manifest import secret_of

LAUNCH_PATIENCE = timedelta(seconds=3)
"""Another orchestrator that created the pod may be about to create its secret."""
START_PATIENCE = timedelta(seconds=10)
"""A pod with a secret has started by then, mostly. One that has not is looked at again after as long."""
AT_ONCE = 16
"""The most pods that one listing asks about; the next one asks about the others."""
LOST = "The secret with its boot line does not exist: the launch was interrupted, or somebody deleted the secret."


class BootLines:
    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._seen: dict[str, datetime] = {}
        """When the secret of a pod, by the pod's uid, was last known to exist."""

    def written(self, pod_uid: str, now: datetime) -> None:
        """We have just created the pod's secret."""
        self._seen[pod_uid] = now

    def lost(self, pods: Iterable[tuple[dict[str, Any], ContainerFacts]], now: datetime, deadline: Deadline) -> set[str]:
        """The names of the pods without a boot line. A pod about which the API server gives no clear answer is not one."""
        waiting = [(pod, facts) for pod, facts in pods if facts.state is ContainerState.WAITING]
        uids = {facts.container_id for _, facts in waiting}
        self._seen = {uid: seen for uid, seen in self._seen.items() if uid in uids}
        enough_s = deadline.left_s / 2
        lost: set[str] = set()
        for pod, facts in [(pod, facts) for pod, facts in waiting if self._is_due(pod, facts, now)][:AT_ONCE]:
            name = secret_of(pod)
            if name is None or deadline.left_s < enough_s:
                continue
            try:
                exists = self._api.has_secret(name)
            except EngineError:
                continue
            if exists:
                self._seen[facts.container_id] = now
            else:
                lost.add(facts.name)
        return lost

    def _is_due(self, pod: dict[str, Any], facts: ContainerFacts, now: datetime) -> bool:
        if pod["metadata"].get("deletionTimestamp"):
            return False
        seen = self._seen.get(facts.container_id)
        if seen is None:
            return now > facts.created_at + LAUNCH_PATIENCE
        slow = facts.placed_at is not None and now > facts.placed_at + START_PATIENCE
        return slow and now > seen + START_PATIENCE
