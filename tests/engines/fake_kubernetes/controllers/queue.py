"""A queue in front of the scheduler, as Kueue's integration of plain pods is one: it holds pods back by a scheduling gate,
and ends a pod that has to make room by a condition and a deletion. Its finalizers are left out."""

from __future__ import annotations

from tests.engines.fake_kubernetes.flavour import Flavour
from tests.engines.fake_kubernetes.objects.answers import Json
from tests.engines.fake_kubernetes.objects.pod_end import delete_pod, set_condition
from tests.engines.fake_kubernetes.objects.resources import PODS
from tests.engines.fake_kubernetes.objects.store import Store

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
GATE = "kueue.x-k8s.io/admission"


class Queue:
    def __init__(self, store: Store, flavour: Flavour) -> None:
        self._store, self._flavour = store, flavour
        self.installed = False

    def hold(self, pod: Json) -> None:
        """What the queue's webhook does to a new pod."""
        labels = pod["metadata"].get("labels") or {}
        if self.installed and QUEUE_LABEL in labels:
            labels["kueue.x-k8s.io/managed"] = "true"
            pod["spec"]["schedulingGates"] = [{"name": GATE}]

    def admit(self, pod: Json) -> None:
        pod["spec"].pop("schedulingGates", None)
        self._store.update(PODS, pod)

    def send_back(self, pod: Json, message: str) -> None:
        """Another workload needs the room: the pod is deleted, and whoever made it makes another."""
        now = self._store.now()
        set_condition(pod, "TerminationTarget", "True", now, self._flavour, "WorkloadEvicted", message)
        delete_pod(self._store, self._store.update(PODS, pod), None, now, self._flavour)
