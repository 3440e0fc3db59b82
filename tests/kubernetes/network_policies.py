"""Enforces network policies on the nodes of `scripts/kubernetes-here`, whose network plugin knows none.

`rules` turns the cluster's own objects into rules of iptables for one node, and `Enforcer` keeps them up to date in the
network of each node, as the controller of a network plugin does. It follows the API's documentation: a pod that no policy
selects is open, a selected one is closed but for what any of its policies allows, answers are always allowed, and so is what
passes between a pod and its own node. What it does not know (named ports, ranges of ports, exceptions of address blocks) it
refuses loudly.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.kubernetes.cluster import Cluster

CHAIN, EGRESS, INGRESS = "TEST-POLICY", "TEST-POLICY-EGRESS", "TEST-POLICY-INGRESS"
NAME = "kubernetes.io/metadata.name"
EVERY_S = 0.5

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Snapshot:
    """What the cluster knows at one moment."""

    pods: Sequence[Object]
    namespaces: Mapping[str, Mapping[str, str]]
    """Their labels, with the one that API servers set since 1.21."""
    policies: Sequence[Object]


def snapshot(objects: Sequence[Object]) -> Snapshot:
    def of(kind: str) -> list[Object]:
        return [entry for entry in objects if entry["kind"] == kind]

    names = {entry["metadata"]["name"]: entry["metadata"].get("labels") or {} for entry in of("Namespace")}
    return Snapshot(
        pods=[pod for pod in of("Pod") if pod["status"].get("podIP") and not pod["spec"].get("hostNetwork")],
        namespaces={name: {**labels, NAME: name} for name, labels in names.items()},
        policies=of("NetworkPolicy"),
    )


def selects(selector: Object, labels: Mapping[str, str]) -> bool:
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_fits(expression, labels) for expression in selector.get("matchExpressions") or [])


def _fits(expression: Object, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or []
    match expression["operator"]:
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case operator:
            raise AssertionError(f"unknown operator {operator}")


def rules(node: str, seen: Snapshot) -> str:
    """For `iptables-restore --noflush` in the network of this node."""
    lines = ["*filter", *(f":{chain} - [0:0]" for chain in (CHAIN, EGRESS, INGRESS))]
    lines += [f"-A {CHAIN} -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN"]
    lines += [f"-A {CHAIN} -j {chain}" for chain in (EGRESS, INGRESS)]
    for pod in seen.pods:
        if pod["spec"].get("nodeName") == node:
            for direction, chain in (("Egress", EGRESS), ("Ingress", INGRESS)):
                lines += _of_pod(pod, direction, chain, seen)
    return "\n".join([*lines, "COMMIT", ""])


def _of_pod(pod: Object, direction: str, chain: str, seen: Snapshot) -> list[str]:
    own, other = ("-s", "-d") if direction == "Egress" else ("-d", "-s")
    address = f"{own} {pod['status']['podIP']}/32"
    policies = [policy for policy in seen.policies if _applies(policy, pod, direction)]
    if not policies:
        return []
    allowed = []
    for policy in policies:
        for rule in policy["spec"].get(direction.lower()) or []:
            peers = rule.get("to" if direction == "Egress" else "from")
            for block in _blocks(peers, policy["metadata"]["namespace"], seen):
                allowed += [f"-A {chain} {address} {other} {block}{port} -j RETURN" for port in _ports(rule.get("ports"))]
    return [*sorted(set(allowed)), f"-A {chain} {address} -j DROP"]


def _applies(policy: Object, pod: Object, direction: str) -> bool:
    spec = policy["spec"]
    types = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    return (
        direction in types
        and policy["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and selects(spec["podSelector"], pod["metadata"].get("labels") or {})
    )


def _blocks(peers: Sequence[Object] | None, namespace: str, seen: Snapshot) -> Iterator[str]:
    if not peers:
        yield "0.0.0.0/0"
    for peer in peers or []:
        if block := peer.get("ipBlock"):
            assert not block.get("except"), "exceptions of address blocks are not known here"
            yield block["cidr"]
            continue
        for pod in seen.pods:
            where = pod["metadata"]["namespace"]
            if "namespaceSelector" in peer:
                near = selects(peer["namespaceSelector"], seen.namespaces.get(where, {}))
            else:
                near = where == namespace
            if near and selects(peer.get("podSelector") or {}, pod["metadata"].get("labels") or {}):
                yield f"{pod['status']['podIP']}/32"


def _ports(ports: Sequence[Object] | None) -> Iterator[str]:
    if not ports:
        yield ""
    for port in ports or []:
        assert isinstance(port.get("port"), int), "named ports are not known here"
        assert "endPort" not in port, "ranges of ports are not known here"
        yield f" -p {port.get('protocol', 'TCP').lower()} --dport {port['port']}"


class Enforcer:
    """Asks for the cluster's objects again and again, and writes the rules of a node when they changed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._stop = threading.Event()
        self._written: dict[str, str] = {}
        self._trouble: BaseException | None = None
        self._thread = threading.Thread(target=self._keep_on, name="network policies")

    def start(self) -> None:
        self.step()
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for node in self._written:
            self._iptables(node, "-D", "FORWARD", "-j", CHAIN)
            for chain in (CHAIN, EGRESS, INGRESS):
                self._iptables(node, "-F", chain)
            for chain in (CHAIN, EGRESS, INGRESS):
                self._iptables(node, "-X", chain)
        if self._trouble is not None:
            raise self._trouble

    def step(self) -> None:
        kinds = "pods,namespaces,networkpolicies"
        seen = snapshot(json.loads(self._cluster.kubectl("get", kinds, "--all-namespaces", "-o", "json"))["items"])
        for node in sorted(self._cluster.ready_nodes()):
            text = rules(node, seen)
            if self._written.get(node) == text:
                continue
            self._cluster.here("in-network", node, "iptables-restore", "-w", "30", "--noflush", text=text)
            if node not in self._written:
                self._iptables(node, "-I", "FORWARD", "-j", CHAIN)
            self._written[node] = text

    def _iptables(self, node: str, *words: str) -> None:
        self._cluster.here("in-network", node, "iptables", "-w", "30", *words)

    def _keep_on(self) -> None:
        try:
            while not self._stop.wait(EVERY_S):
                self.step()
        except BaseException as error:
            self._trouble = error


@contextmanager
def enforced(cluster: Cluster) -> Iterator[None]:
    """Policies hold for as long as the block lasts. A cluster of somebody else's enforces its own, or does not."""
    if cluster.number is None:
        yield
        return
    enforcer = Enforcer(cluster)
    enforcer.start()
    try:
        yield
    finally:
        enforcer.close()
