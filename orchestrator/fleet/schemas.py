"""Response bodies of the REST API for the fleet."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from orchestrator.http.schemas import Answer


class InstanceTypeOut(Answer):
    name: str
    vcpu: float
    memory_bytes: int
    disk_bytes: int
    scratch_bytes: int | None
    """How much a command may write on this engine; null if unlimited or not known yet."""
    fits: bool
    why_not: str | None
    default: bool
    max_instances: int | None = Field(
        description="Most containers of this type at once; null: as many as there is room for."
    )
    in_use: int = Field(description="Containers that runs hold here.")
    ready: int = Field(description="Runners that stand ready here; they count towards `max_instances`.")
    starting: int = Field(description="Runners that will stand ready.")


class ContainerOut(Answer):
    name: str
    run_id: str | None
    attempt: int | None
    instance_type: str | None
    state: str
    machine: str | None = Field(description="The machine of a cluster that it was placed on.")
    detail: str | None = Field(description="The engine's own words: what it waits for, or what is happening to it.")
    cpu_s: float | None
    memory_bytes: int | None
    memory_limit_bytes: int | None


class EngineOut(Answer):
    name: str
    reachable: bool
    version: str | None
    isolation: str | None
    less_isolated: bool
    disk: str | None
    """How an instance type's disk size is enforced on this engine."""
    error: str | None


class ClusterMachineOut(Answer):
    """One machine of a cluster."""

    name: str
    ready: bool
    vcpu: float
    memory_bytes: int
    containers: int = Field(description="Containers of ours that are placed on it and have not ended.")
    detail: str | None = Field(description="Why it takes no containers of ours; null if it does.")


class CapacityOut(Answer):
    max_instances: int
    vcpu: float | None
    memory_bytes: int | None
    used_instances: int
    used_vcpu: float
    used_memory_bytes: int


class WaitingOut(Answer):
    run_id: str
    instance_type: str
    priority: int
    since: datetime
    not_before: datetime | None
    why: str


class PoolOut(Answer):
    """The warm pool of one instance type."""

    instance_type: str
    warm: int
    ready: int
    starting: int
    sleep_after_s: float
    trouble: str | None


class LastHourOut(Answer):
    """How starts went, for attempts begun within the last hour."""

    starts: int
    refused: int
    mean_wait_s: float
    longest_wait_s: float
    held_share: float


class FleetOut(Answer):
    engine: EngineOut
    capacity: CapacityOut
    instance_types: list[InstanceTypeOut]
    containers: list[ContainerOut]
    machines: list[ClusterMachineOut] = Field(description="The machines of a cluster; empty if the engine is one machine.")
    machines_hidden: str | None = Field(description="Why the machines of a cluster are not listed.")
    pools: list[PoolOut]
    waiting: list[WaitingOut]
    signs: list[str]
    last_hour: LastHourOut
    banner: str | None
    leader: bool
