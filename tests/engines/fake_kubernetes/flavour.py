"""Which release of Kubernetes the fake behaves like, where releases differ in what an engine can see."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Flavour:
    minor: int
    git_version: str
    fails_before_the_end: bool
    """A pod that its kubelet ends (deadline, eviction) is `Failed` at once, without conditions, while its container still
    runs; that the container has ended is never reported."""
    ends_before_the_phase: bool
    """The container is `terminated` while the pod's phase is still `Running`."""
    disruption_target: bool
    """Who deletes a pod says why in a condition `DisruptionTarget`."""
    pod_failed_reason: str
    """The reason in the conditions of a failed pod."""
    sandbox_condition: bool
    """There is a condition `PodReadyToStartContainers`."""
    generations: bool
    """Pods have `metadata.generation` and their conditions `observedGeneration`."""


V1_20 = Flavour(
    minor=20,
    git_version="v1.20.2",
    fails_before_the_end=True,
    ends_before_the_phase=False,
    disruption_target=False,
    pod_failed_reason="ContainersNotReady",
    sandbox_condition=False,
    generations=False,
)
V1_35 = Flavour(
    minor=35,
    git_version="v1.35.8",
    fails_before_the_end=False,
    ends_before_the_phase=True,
    disruption_target=True,
    pod_failed_reason="PodFailed",
    sandbox_condition=True,
    generations=True,
)
