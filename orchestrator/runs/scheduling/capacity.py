"""Decides whether one more container fits, if not why, and which machine starts it: the least loaded that fits. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.engines.engine import InstanceType
from runner.contract.run_spec import RunKind

GIB = 1 << 30
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Capacity:
    max_instances: int
    vcpu: float
    memory_bytes: int


@dataclass(frozen=True)
class Load:
    """Resources that live containers hold."""

    instances: int = 0
    vcpu: float = 0.0
    memory_bytes: int = 0
    by_type: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, types: Iterable[InstanceType]) -> Load:
        held = list(types)
        counts = Counter(t.name for t in held)
        return cls(len(held), sum(t.vcpu for t in held), sum(t.memory_bytes for t in held), counts)

    def plus(self, instance_type: InstanceType) -> Load:
        counts = {**self.by_type, instance_type.name: self.by_type.get(instance_type.name, 0) + 1}
        memory = self.memory_bytes + instance_type.memory_bytes
        return Load(self.instances + 1, self.vcpu + instance_type.vcpu, memory, counts)

    def minus(self, instance_type: InstanceType) -> Load:
        counts = {**self.by_type, instance_type.name: self.by_type.get(instance_type.name, 0) - 1}
        memory = self.memory_bytes - instance_type.memory_bytes
        return Load(self.instances - 1, self.vcpu - instance_type.vcpu, memory, counts)


def type_or_largest(types: Mapping[str, InstanceType], name: str) -> InstanceType:
    """The type, or the largest one if it was removed from the settings."""
    return types.get(name) or max(types.values(), key=lambda t: (t.vcpu, t.memory_bytes))


def never_fits(capacity: Capacity, wanted: InstanceType) -> str | None:
    """Why this type can never run here, or None."""
    if wanted.vcpu > capacity.vcpu + TOLERANCE:
        return f"{wanted.name} needs {wanted.vcpu:g} vCPU, this engine has {capacity.vcpu:g}: choose a smaller instance type"
    if wanted.memory_bytes > capacity.memory_bytes:
        return (
            f"{wanted.name} needs {wanted.memory_bytes / GIB:.3g} GiB of memory, this engine has "
            f"{capacity.memory_bytes / GIB:.3g}: choose a smaller instance type"
        )
    return None


def why_not(capacity: Capacity, load: Load, wanted: InstanceType) -> str | None:
    """Why it must wait now, or None if it fits."""
    if (never := never_fits(capacity, wanted)) is not None:
        return never
    if load.instances >= capacity.max_instances:
        return f"all {capacity.max_instances} instances are in use (max_instances)"
    if wanted.max_instances is not None and load.by_type.get(wanted.name, 0) >= wanted.max_instances:
        return f"all {wanted.max_instances} instances of {wanted.name} are in use (its max_instances)"
    after = load.plus(wanted)
    if after.vcpu > capacity.vcpu + TOLERANCE:
        return f"needs {wanted.vcpu:g} vCPU, {max(capacity.vcpu - load.vcpu, 0):.3g} of {capacity.vcpu:g} free"
    if after.memory_bytes > capacity.memory_bytes:
        needed, whole = wanted.memory_bytes / GIB, capacity.memory_bytes / GIB
        free = max(whole - load.memory_bytes / GIB, 0)
        return f"needs {needed:.3g} GiB of memory, {free:.3g} of {whole:.3g} free"
    return None


def kind_is_full(limits: Mapping[RunKind, int], running: Mapping[str, int], kind: str) -> str | None:
    """Why a run of this kind must wait for others of its kind, or None."""
    limit = limits.get(RunKind(kind))
    if limit is None or running.get(kind, 0) < limit:
        return None
    return f"{running.get(kind, 0)} jobs of kind {kind} run, at most {limit} may (kind_limits)"


LOCAL = "local"


@dataclass(frozen=True)
class Place:
    """An engine that can start containers. `agent` is None for our own."""

    provider: str
    capacity: Capacity
    load: Load
    agent: str | None = None
    instance_types: frozenset[str] | None = None
    """The types that it offers; None means all."""

    @property
    def share(self) -> float:
        """The used share of its scarcest resource."""
        return max(
            self.load.instances / self.capacity.max_instances,
            self.load.vcpu / self.capacity.vcpu,
            self.load.memory_bytes / self.capacity.memory_bytes,
        )

    def offers(self, wanted: InstanceType, provider: str | None) -> bool:
        known = self.instance_types is None or wanted.name in self.instance_types
        return known and provider in (None, self.provider)


def choose(places: Sequence[Place], wanted: InstanceType, provider: str | None) -> Place | None:
    """The least loaded engine that fits, the first one on a tie; None if the run must wait."""
    fitting = [p for p in places if p.offers(wanted, provider) and why_not(p.capacity, p.load, wanted) is None]
    return min(fitting, key=lambda place: place.share, default=None)


def why_nowhere(places: Sequence[Place], wanted: InstanceType, provider: str | None) -> str | None:
    """Why the run must wait, in a sentence; None if some engine has room."""
    if choose(places, wanted, provider) is not None:
        return None
    offering = [place for place in places if place.offers(wanted, provider)]
    if not offering:
        whose = f" of provider {provider}" if provider else ""
        return f"no machine{whose} that offers {wanted.name} is connected"
    reasons = [(place, why_not(place.capacity, place.load, wanted)) for place in offering]
    return "; ".join(f"{place.provider}: {why}" if len(offering) > 1 else f"{why}" for place, why in reasons)
