"""Gives pods a node, or says in the scheduler's words why none fits; a pod of higher priority may displace others."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from fractions import Fraction

from tests.engines.fake_kubernetes.flavour import Flavour
from tests.engines.fake_kubernetes.objects.answers import Json
from tests.engines.fake_kubernetes.objects.pod_end import ENDED_PHASES, Disruption, delete_pod, set_condition
from tests.engines.fake_kubernetes.objects.quantities import amount, requests_of
from tests.engines.fake_kubernetes.objects.resources import NODES, PODS
from tests.engines.fake_kubernetes.objects.store import Store

_COUNTED = ("cpu", "memory", "ephemeral-storage")


def _tolerated(taint: Json, pod: Json) -> bool:
    return any(
        toleration.get("key") in (None, "", taint["key"])
        and toleration.get("effect") in (None, "", taint["effect"])
        and (toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""))
        for toleration in pod["spec"]["tolerations"]
    )


def _unfit(pod: Json, node: Json, others: list[Json], flavour: Flavour) -> list[str]:
    """Why the node cannot take the pod beside the others; empty if it can."""
    spec, labels = node.get("spec") or {}, node["metadata"].get("labels") or {}
    if spec.get("unschedulable"):
        return ["node(s) were unschedulable"]
    for taint in spec.get("taints") or []:
        if taint["effect"] != "PreferNoSchedule" and not _tolerated(taint, pod):
            if flavour.minor >= 34:
                return ["node(s) had untolerated taint(s)"]
            return [f"node(s) had taint {{{taint['key']}: {taint.get('value', '')}}}, that the pod didn't tolerate"]
    if any(labels.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
        return [f"node(s) didn't match Pod's node affinity{'/selector' if flavour.minor >= 22 else ''}"]
    room = node["status"]["allocatable"]
    asked = requests_of(pod["spec"])
    reasons = ["Too many pods"] if len(others) + 1 > amount(room["pods"]) else []
    for name in _COUNTED:
        used = sum((requests_of(other["spec"]).get(name, Fraction(0)) for other in others), Fraction(0))
        if asked.get(name, Fraction(0)) and asked[name] + used > amount(room.get(name, 0)):
            reasons.append(f"Insufficient {name}")
    return reasons


def _words(reasons: list[list[str]], flavour: Flavour) -> str:
    if not reasons:
        return "no nodes available to schedule pods"
    total = len(reasons)
    counted = Counter(reason for of_node in reasons for reason in of_node)
    words = f"0/{total} nodes are available: {', '.join(sorted(f'{n} {reason}' for reason, n in counted.items()))}."
    if flavour.minor < 24:
        return words
    helpless = sum(not of_node[0].startswith(("Insufficient", "Too many")) for of_node in reasons)
    parts = [f"{total - helpless} No preemption victims found for incoming pod"] if total > helpless else []
    parts += [f"{helpless} Preemption is not helpful for scheduling"] if helpless else []
    claims = "no new claims to deallocate, " if flavour.minor >= 32 else ""
    return f"{words} {claims}preemption: 0/{total} nodes are available: {', '.join(parts)}."


class Scheduler:
    def __init__(self, store: Store, flavour: Flavour) -> None:
        self._store = store
        self._flavour = flavour
        self.paused = False
        """A scheduler that is down: pods stay without node and without a word."""

    def schedule(self, now: datetime) -> None:
        if self.paused:
            return
        pods = self._store.all(PODS)
        waiting = [pod for pod in pods if self._waits(pod)]
        for pod in sorted(waiting, key=lambda one: -one["spec"]["priority"]):
            self._place(pod, now)

    def _waits(self, pod: Json) -> bool:
        spec, meta = pod["spec"], pod["metadata"]
        free = not spec.get("nodeName") and not spec.get("schedulingGates") and "deletionTimestamp" not in meta
        return free and pod["status"]["phase"] not in ENDED_PHASES

    def _on(self, node: str) -> list[Json]:
        pods = self._store.all(PODS)
        return [one for one in pods if one["spec"].get("nodeName") == node and one["status"]["phase"] not in ENDED_PHASES]

    def _place(self, pod: Json, now: datetime) -> None:
        nodes = self._store.all(NODES)
        beside = {node["metadata"]["name"]: self._on(node["metadata"]["name"]) for node in nodes}
        reasons = [_unfit(pod, node, beside[node["metadata"]["name"]], self._flavour) for node in nodes]
        fitting = [node["metadata"]["name"] for node, unfit in zip(nodes, reasons, strict=True) if not unfit]
        if fitting:
            pod["spec"]["nodeName"] = min(fitting, key=lambda name: len(beside[name]))
            set_condition(pod, "PodScheduled", "True", now, self._flavour, probed=True)
        else:
            words = _words(reasons, self._flavour)
            set_condition(pod, "PodScheduled", "False", now, self._flavour, "Unschedulable", words, probed=True)
            self._displace(pod, nodes, beside, now)
        self._store.update(PODS, pod)

    def _displace(self, pod: Json, nodes: list[Json], beside: dict[str, list[Json]], now: datetime) -> None:
        """Delete pods of lower priority from the first node where that makes room."""
        mine = pod["spec"]["priority"]
        for node in nodes:
            name = node["metadata"]["name"]
            others = sorted(beside[name], key=lambda one: one["spec"]["priority"])
            victims: list[Json] = []
            while others and others[0]["spec"]["priority"] < mine and _unfit(pod, node, others, self._flavour):
                victims.append(others.pop(0))
            if victims and not _unfit(pod, node, others, self._flavour):
                pod["status"]["nominatedNodeName"] = name
                why = Disruption(
                    "PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod"
                )
                for victim in victims:
                    if "deletionTimestamp" not in victim["metadata"]:
                        delete_pod(self._store, victim, None, now, self._flavour, why)
                return
