"""Reads capacity and machines of a cluster from its quotas and nodes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.engines.engine import Machine

_UNITS = {
    "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50,
    "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "n": 1e-9, "u": 1e-6,
}  # fmt: skip


@dataclass(frozen=True)
class Room:
    """How much the pods of the namespace may use together."""

    cpus: float | None
    memory_bytes: int | None
    source: str
    """What says so."""


def quantity(text: str | float) -> float:
    """A quantity of Kubernetes, such as `250m`, `4Gi` or `1e3`."""
    words = str(text)
    for unit, factor in _UNITS.items():
        if words.endswith(unit):
            return float(words[: -len(unit)]) * factor
    return float(words)


def read_quotas(quotas: Iterable[Mapping[str, Any]]) -> Room:
    """The tightest limits of all quotas of the namespace that apply to every pod."""
    cpus: list[float] = []
    memory: list[float] = []
    for quota in quotas:
        spec = quota.get("spec") or {}
        if spec.get("scopes") or spec.get("scopeSelector"):
            continue
        hard = spec.get("hard") or {}
        cpus += [quantity(hard[key]) for key in ("limits.cpu", "requests.cpu", "cpu") if key in hard]
        memory += [quantity(hard[key]) for key in ("limits.memory", "requests.memory", "memory") if key in hard]
    return Room(min(cpus, default=None), int(min(memory)) if memory else None, "the namespace's quota")


def read_nodes(
    nodes: Iterable[Mapping[str, Any]],
    selector: Mapping[str, str] | None = None,
    tolerations: Sequence[Mapping[str, Any]] = (),
) -> tuple[Machine, ...]:
    """The machines; each says why it takes none of our pods, given the settings that every pod has."""
    return tuple(sorted((_machine(node, selector or {}, tolerations) for node in nodes), key=lambda machine: machine.name))


def room_of(machines: Iterable[Machine]) -> Room:
    """What the machines that take containers offer together."""
    usable = [machine for machine in machines if machine.ready and machine.detail is None]
    return Room(
        sum(machine.cpus for machine in usable), sum(machine.memory_bytes for machine in usable), "the cluster's machines"
    )


def _machine(node: Mapping[str, Any], selector: Mapping[str, str], tolerations: Sequence[Mapping[str, Any]]) -> Machine:
    spec, status = node.get("spec") or {}, node.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or []}
    ready = conditions.get("Ready") or {}
    offered = status.get("allocatable") or status.get("capacity") or {}
    detail = None
    if ready.get("status") != "True":
        detail = f"not ready: {ready.get('message') or ready.get('reason') or 'it has not reported'}"
    elif spec.get("unschedulable"):
        detail = "cordoned: it takes no new pods"
    elif taint := next((taint for taint in spec.get("taints") or [] if _keeps_out(taint, tolerations)), None):
        detail = f"tainted: {taint['key']} keeps our pods out"
    elif any((node["metadata"].get("labels") or {}).get(key) != value for key, value in selector.items()):
        detail = "not selected by BENCHYARD_KUBE_NODE_SELECTOR"
    return Machine(
        name=str(node["metadata"]["name"]),
        ready=ready.get("status") == "True",
        cpus=quantity(offered.get("cpu", 0)),
        memory_bytes=int(quantity(offered.get("memory", 0))),
        detail=detail,
    )


def _keeps_out(taint: Mapping[str, Any], tolerations: Sequence[Mapping[str, Any]]) -> bool:
    if taint.get("effect") not in ("NoSchedule", "NoExecute"):
        return False
    return not any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return toleration.get("key") == taint.get("key") and toleration.get("value", "") == taint.get("value", "")
