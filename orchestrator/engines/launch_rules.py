"""What every engine decides alike at a launch: which labels a container gets, whose it is, whether it fits. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.engines.engine import (
    LABEL_ATTEMPT,
    LABEL_INSTANCE,
    LABEL_INSTANCE_TYPE,
    LABEL_RUN,
    EngineError,
    InstanceType,
    LaunchRequest,
    NameTaken,
)


def labels_of(request: LaunchRequest, instance: str) -> dict[str, str]:
    return {
        LABEL_INSTANCE: instance,
        LABEL_RUN: request.run_id,
        LABEL_ATTEMPT: str(request.attempt),
        LABEL_INSTANCE_TYPE: request.instance_type.name,
    }


def check_same_attempt(labels: Mapping[str, str], request: LaunchRequest, instance: str) -> None:
    """Raises `NameTaken` unless a container of the wanted name is the one that this launch would have made."""
    wanted = labels_of(request, instance)
    if any(labels.get(key) != wanted[key] for key in (LABEL_INSTANCE, LABEL_RUN, LABEL_ATTEMPT)):
        raise NameTaken(f"A container named {request.name} exists and is not of this run: it was left alone.")


def check_ours(labels: Mapping[str, str], name: str, instance: str) -> None:
    """Raises `NameTaken` for a container that is not of this instance."""
    if labels.get(LABEL_INSTANCE) != instance:
        raise NameTaken(f"Container {name} is not of this instance: it was left alone.")


def is_runner(labels: Mapping[str, str], instance: str) -> bool:
    """Whether `list` shows it: of this instance, and of a run. An orchestrator's own container is of no run."""
    return labels.get(LABEL_INSTANCE) == instance and LABEL_RUN in labels


def check_fits(kind: InstanceType, engine_cpus: int) -> None:
    """Docker refuses more CPUs than it has, in words that help nobody."""
    if kind.vcpu > engine_cpus:
        raise EngineError(
            f"Instance type {kind.name} wants {kind.vcpu:g} vCPU and this engine has {engine_cpus}: "
            "choose a smaller instance type, or lower its vcpu in the settings."
        )
