"""Node objects, and what the node controller does about a node that is silent, comes back, or is drained."""

from __future__ import annotations

from datetime import datetime

from tests.engines.fake_kubernetes.flavour import Flavour
from tests.engines.fake_kubernetes.objects.answers import Json
from tests.engines.fake_kubernetes.objects.pod_end import ENDED_PHASES, Disruption, delete_pod, set_condition
from tests.engines.fake_kubernetes.objects.resources import NODES, PODS
from tests.engines.fake_kubernetes.objects.store import Store, timestamp

UNREACHABLE = "node.kubernetes.io/unreachable"
_ROOM = {"ephemeral-storage": "100Gi", "pods": "110"}


def new_node(name: str, address: str, room: dict[str, str], labels: dict[str, str], flavour: Flavour) -> Json:
    amounts = {**_ROOM, **room}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {},
        "status": {
            "addresses": [{"address": address, "type": "InternalIP"}, {"address": name, "type": "Hostname"}],
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [_ready("True", "KubeletReady", "kubelet is posting ready status")],
            "nodeInfo": {"kubeletVersion": flavour.git_version, "architecture": "amd64", "operatingSystem": "linux"},
        },
    }


def _ready(status: str, reason: str, message: str) -> Json:
    return {"type": "Ready", "status": status, "reason": reason, "message": message}


def bound_to(store: Store, node: str) -> list[Json]:
    return [pod for pod in store.all(PODS) if pod["spec"].get("nodeName") == node]


def notice_silence(store: Store, name: str, now: datetime, flavour: Flavour) -> None:
    """The node's time is up (40 or 50 s): it is not ready, it is tainted, and its pods are not ready."""
    node = store.need(NODES, None, name)
    node["status"]["conditions"] = [_ready("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")]
    taint = {"key": UNREACHABLE, "timeAdded": timestamp(now)}
    node["spec"]["taints"] = [{**taint, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
    store.update(NODES, node)
    for pod in bound_to(store, name):
        if pod["status"]["phase"] not in ENDED_PHASES:
            set_condition(pod, "Ready", "False", now, flavour)
            store.update(PODS, pod)


def end_toleration(store: Store, name: str, now: datetime, flavour: Flavour) -> None:
    """The pods have tolerated the silent node for long enough: they are deleted, which nobody on the node carries out."""
    why = Disruption("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
    for pod in bound_to(store, name):
        delete_pod(store, pod, None, now, flavour, why)


def welcome_back(store: Store, name: str) -> None:
    node = store.need(NODES, None, name)
    node["status"]["conditions"] = [_ready("True", "KubeletReady", "kubelet is posting ready status")]
    node["spec"].pop("taints", None)
    store.update(NODES, node)


def cordon(store: Store, name: str, unschedulable: bool) -> None:
    node = store.need(NODES, None, name)
    node["spec"]["unschedulable"] = unschedulable
    store.update(NODES, node)


def collect_orphans(store: Store, now: datetime, flavour: Flavour, *, removes: bool) -> None:
    """PodGC: pods of a node that no longer exists are declared failed, then removed by force."""
    nodes = {node["metadata"]["name"] for node in store.all(NODES)}
    why = Disruption("DeletionByPodGC", "PodGC: node no longer exists")
    for pod in store.all(PODS):
        if pod["spec"].get("nodeName", next(iter(nodes), "")) in nodes:
            continue
        if pod["status"]["phase"] not in ENDED_PHASES:
            pod["status"]["phase"] = "Failed"
            if flavour.disruption_target:
                set_condition(pod, "DisruptionTarget", "True", now, flavour, why.reason, why.message)
            store.update(PODS, pod)
        if removes:
            store.delete(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"], pod["metadata"]["uid"])
