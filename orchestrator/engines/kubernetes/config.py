"""What the Kubernetes engine needs to know, as plain values."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from orchestrator.engines.engine import LABEL_INSTANCE, EngineError


class PodSecurity(StrEnum):
    """The Pod Security Standard that runner pods keep to."""

    BASELINE = "baseline"  #: the runner is root with three capabilities, so that every program gets its own uid
    RESTRICTED = "restricted"  #: no root and no capability: programs share the runner's uid


SANDBOX_LEVELS = {PodSecurity.BASELINE: "full", PodSecurity.RESTRICTED: "shared-uid"}


@dataclass(frozen=True)
class KubeEngineConfig:
    instance: str
    """Value of the label `benchyard.instance`, which marks what is ours."""
    owner: str | None = None
    """Value of the label `benchyard.owner`; anything with another value is not ours, whatever its instance name."""
    namespace: str = "benchyard-runners"
    kubeconfig: Path | None = None
    """None: the account of the pod that we run in, or else the file in KUBECONFIG or ~/.kube/config."""
    context: str | None = None
    runner_address: str | None = None
    """The host name or address at which pods reach the runner port. We look the name up: pods have no name service."""
    runner_port: int | None = None
    orchestrator_alias: str = "orchestrator"
    """The host name by which runners reach that address."""
    service_account: str | None = None
    pull_secrets: tuple[str, ...] = ()
    runtime_class: str | None = None
    user_namespaces: bool = False
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    priority_class: str | None = None
    queue: str | None = None
    """A queue of Kueue, which then admits the pods."""
    pod_security: PodSecurity = PodSecurity.BASELINE
    require_policy: bool = True
    """Hold launches until a probe has shown that runners reach nothing but the runner port."""
    probe_targets: tuple[str, ...] = ("169.254.169.254:80",)
    """Further addresses that the probe must not reach: the metadata service of clouds."""
    probe_image: str | None = None
    """The runner's image, in which the probe runs."""
    vcpu_capacity: float | None = None
    memory_capacity_bytes: int | None = None
    guest_images: tuple[str, ...] = ()
    """Patterns of the users' images that may be started."""
    guest_pull: bool = True
    grace_s: int = 4
    """How long a program may take to end after SIGTERM; fixed when its pod is made."""
    lost_after_s: int = 10
    """After this time on a machine that does not answer, the cluster gives a pod up."""
    longest_s: int = 7 * 24 * 3600
    """The life of a pod whose launch does not limit it."""
    command: tuple[str, ...] = ("/opt/venv/bin/python", "-m", "runner")
    call_limit_s: float = 9.5
    """After this time the API server counts as unreachable."""
    socket_limit_s: float = 9
    """Limit of one request: shorter, so that the thread of a call that was given up is freed."""
    watch_silence_s: float = 75
    """A watch that has said nothing for so long is given up: its connection may have broken without a sign. Longer than the
    API server itself lets one last."""

    @property
    def owner_name(self) -> str:
        """The name of the object that owns everything of this installation."""
        return f"benchyard-{_object_name(self.instance, self.owner or '')}"

    @property
    def probe_name(self) -> str:
        return f"{self.owner_name}-probe"

    def check(self) -> None:
        """Raises `EngineError` if the instance's name cannot be a label."""
        if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", self.instance):
            raise EngineError(
                f"The instance name {self.instance!r} cannot be the value of the label {LABEL_INSTANCE} in Kubernetes: "
                "it must begin and end with a letter or digit."
            )


def _object_name(instance: str, owner: str) -> str:
    """A name that Kubernetes accepts; different for every instance and installation."""
    readable = re.sub(r"[^a-z0-9-]+", "-", instance.lower()).strip("-")
    return f"{readable}-{hashlib.sha256(f'{instance}/{owner}'.encode()).hexdigest()[:8]}"
