"""Launch rules that all engines share: a container's labels, its owner, whether it fits. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.engines.engine import (
    LABEL_ATTEMPT,
    LABEL_INSTANCE,
    LABEL_INSTANCE_TYPE,
    LABEL_OWNER,
    LABEL_RUN,
    DiskLimit,
    EngineError,
    InstanceType,
    LaunchRequest,
    NameTaken,
)


def owner_labels(instance: str, owner: str | None) -> dict[str, str]:
    """Labels of everything that is ours."""
    return {LABEL_INSTANCE: instance} | ({LABEL_OWNER: owner} if owner else {})


def is_ours(labels: Mapping[str, str], instance: str, owner: str | None) -> bool:
    """Whether it is of this instance and not of another installation with the same name. Older versions set no owner."""
    return labels.get(LABEL_INSTANCE) == instance and (owner is None or labels.get(LABEL_OWNER, owner) == owner)


def labels_of(request: LaunchRequest, instance: str, owner: str | None = None) -> dict[str, str]:
    return {
        **owner_labels(instance, owner),
        LABEL_RUN: request.run_id,
        LABEL_ATTEMPT: str(request.attempt),
        LABEL_INSTANCE_TYPE: request.instance_type.name,
    }


def check_same_attempt(labels: Mapping[str, str], request: LaunchRequest, instance: str, owner: str | None = None) -> None:
    """Raises `NameTaken` unless the existing container is the one this launch would have made."""
    wanted = labels_of(request, instance)
    same = all(labels.get(key) == wanted[key] for key in (LABEL_RUN, LABEL_ATTEMPT))
    if not same or not is_ours(labels, instance, owner):
        raise NameTaken(f"A container named {request.name} exists and is not of this run: it was left alone.")


def check_ours(labels: Mapping[str, str], name: str, instance: str, owner: str | None = None) -> None:
    """Raises `NameTaken` if the container is not of this instance."""
    if not is_ours(labels, instance, owner):
        raise NameTaken(f"Container {name} is not of this instance: it was left alone.")


def is_runner(labels: Mapping[str, str], instance: str, owner: str | None = None) -> bool:
    """Whether `list` returns it: it is of this instance and of a run. An orchestrator's own container has no run."""
    return LABEL_RUN in labels and is_ours(labels, instance, owner)


def scratch_bytes(kind: InstanceType, limit: DiskLimit) -> int | None:
    """How much a command may write to `/tmp`, which contains its working directory; None if unlimited.

    A file system in memory counts as the container's memory: if it took more than half, a command that fills its disk would
    be killed for its memory use.
    """
    if limit in (DiskLimit.QUOTA, DiskLimit.EVICTION):
        return kind.disk_bytes
    return min(kind.disk_bytes, kind.memory_bytes // 2) if limit is DiskLimit.MEMORY else None


def disk_sentence(limit: DiskLimit) -> str:
    return {
        DiskLimit.QUOTA: "Commands have the disk of their instance type under /tmp, limited by the engine's quota.",
        DiskLimit.EVICTION: (
            "Commands have the disk of their instance type under /tmp; the container of one that writes more is evicted."
        ),
        DiskLimit.MEMORY: (
            "This engine cannot limit disk (that needs XFS with pquota under its data): commands have /tmp in memory "
            "instead, as large as their type's disk or half its memory, whichever is less."
        ),
        DiskLimit.FILE: "Without a container engine one file is limited to the type's disk; all of them together are not.",
    }[limit]


def check_fits(kind: InstanceType, engine_cpus: float) -> None:
    """Docker refuses more CPUs than it has, but with an unhelpful message."""
    if kind.vcpu > engine_cpus:
        raise EngineError(
            f"Instance type {kind.name} wants {kind.vcpu:g} vCPU and this engine has {engine_cpus:g}: "
            "choose a smaller instance type, or lower its vcpu in the settings."
        )
