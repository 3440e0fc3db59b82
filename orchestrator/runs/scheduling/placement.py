"""Where a run is started: on the least loaded place that fits it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.engines.engine import InstanceType
from orchestrator.runs.scheduling.capacity import Capacity, Load, why_not

LOCAL = "local"


@dataclass(frozen=True)
class Place:
    """An engine that containers can be started on. `agent` is None for our own."""

    provider: str
    capacity: Capacity
    load: Load
    agent: str | None = None
    instance_types: frozenset[str] | None = None
    """What it offers; None: everything."""

    @property
    def share(self) -> float:
        """How much of it is taken, by whatever it has least of."""
        return max(
            self.load.instances / self.capacity.max_instances,
            self.load.vcpu / self.capacity.vcpu,
            self.load.memory_bytes / self.capacity.memory_bytes,
        )

    def offers(self, wanted: InstanceType, provider: str | None) -> bool:
        known = self.instance_types is None or wanted.name in self.instance_types
        return known and provider in (None, self.provider)


def choose(places: Sequence[Place], wanted: InstanceType, provider: str | None) -> Place | None:
    """The least loaded one that fits, the first of equals; None when it must wait."""
    fitting = [p for p in places if p.offers(wanted, provider) and why_not(p.capacity, p.load, wanted) is None]
    return min(fitting, key=lambda place: place.share, default=None)


def why_nowhere(places: Sequence[Place], wanted: InstanceType, provider: str | None) -> str | None:
    """Why it must wait, in a sentence, or None when there is a place."""
    if choose(places, wanted, provider) is not None:
        return None
    offering = [place for place in places if place.offers(wanted, provider)]
    if not offering:
        whose = f" of provider {provider}" if provider else ""
        return f"no machine{whose} that offers {wanted.name} is connected"
    reasons = [(place, why_not(place.capacity, place.load, wanted)) for place in offering]
    return "; ".join(f"{place.provider}: {why}" if len(offering) > 1 else f"{why}" for place, why in reasons)
