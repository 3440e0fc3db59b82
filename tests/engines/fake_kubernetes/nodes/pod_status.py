"""The status that a kubelet writes: phase, conditions and container states, as each release words them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from tests.engines.fake_kubernetes.flavour import Flavour
from tests.engines.fake_kubernetes.objects.answers import Json
from tests.engines.fake_kubernetes.objects.pod_end import ENDED_PHASES, set_condition
from tests.engines.fake_kubernetes.objects.store import timestamp

DEADLINE = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")


@dataclass
class ContainerView:
    """What the kubelet knows of one container."""

    name: str
    image: str
    container_id: str | None = None
    waiting: tuple[str, str | None] = ("ContainerCreating", None)
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    out_of_memory: bool = False
    init: bool = False

    @property
    def running(self) -> bool:
        return self.started_at is not None and self.exit_code is None

    def state(self) -> Json:
        if self.started_at is None:
            reason, message = self.waiting
            return {"waiting": {"reason": reason, **({"message": message} if message else {})}}
        if self.exit_code is None or self.finished_at is None:
            return {"running": {"startedAt": timestamp(self.started_at)}}
        reason = "OOMKilled" if self.out_of_memory else "Completed" if self.exit_code == 0 else "Error"
        return {
            "terminated": {
                "containerID": self.container_id,
                "exitCode": self.exit_code,
                "finishedAt": timestamp(self.finished_at),
                "reason": reason,
                "startedAt": timestamp(self.started_at),
            }
        }

    def status(self) -> Json:
        ready = self.exit_code == 0 if self.init else self.running
        status: Json = {
            "image": self.image,
            "imageID": f"sha256:{'0' * 64}" if self.container_id else "",
            "lastState": {},
            "name": self.name,
            "ready": ready,
            "restartCount": 0,
            "state": self.state(),
        }
        if not self.init:
            status["started"] = self.running
        if self.container_id:
            status["containerID"] = self.container_id
        return status


@dataclass
class PodView:
    """What the kubelet knows of one pod."""

    host_ip: str
    pod_ip: str
    accepted_at: datetime
    containers: list[ContainerView]
    init_containers: list[ContainerView] = field(default_factory=list)
    ending: tuple[str, str] | None = None
    """Why the kubelet itself ends it: reason and message."""
    phase_held: bool = False
    """The phase is still the one before the containers ended."""
    sandbox: bool = False
    """It has a network of its own: an address."""


def _phase(view: PodView) -> str:
    if any(one.exit_code not in (None, 0) for one in view.init_containers):
        return "Failed"
    if any(one.exit_code is None for one in view.init_containers) or any(one.started_at is None for one in view.containers):
        return "Pending"
    if view.phase_held or any(one.running for one in view.containers):
        return "Running"
    return "Succeeded" if all(one.exit_code == 0 for one in view.containers) else "Failed"


def _conditions(pod: Json, view: PodView, now: datetime, flavour: Flavour) -> None:
    phase = pod["status"]["phase"]
    completed = "PodCompleted" if phase == "Succeeded" else None
    pending_init = [one.name for one in view.init_containers if one.exit_code != 0]
    if flavour.sandbox_condition:
        live = view.sandbox and phase not in ENDED_PHASES
        set_condition(pod, "PodReadyToStartContainers", "True" if live else "False", now, flavour)
    if pending_init:
        words = f"containers with incomplete status: [{' '.join(pending_init)}]"
        set_condition(pod, "Initialized", "False", now, flavour, "ContainersNotInitialized", words)
    else:
        set_condition(pod, "Initialized", "True", now, flavour, completed)
    unready = [one.name for one in view.containers if not one.running]
    for kind in ("Ready", "ContainersReady"):
        if not unready:
            set_condition(pod, kind, "True", now, flavour)
        elif completed:
            set_condition(pod, kind, "False", now, flavour, completed)
        elif phase == "Failed" and flavour.pod_failed_reason == "PodFailed":
            set_condition(pod, kind, "False", now, flavour, "PodFailed")
        else:
            words = f"containers with unready status: [{' '.join(unready)}]"
            set_condition(pod, kind, "False", now, flavour, "ContainersNotReady", words)
    set_condition(pod, "PodScheduled", "True", now, flavour)


def write_status(pod: Json, view: PodView, now: datetime, flavour: Flavour) -> None:
    """Bring the pod's status up to what the kubelet knows; a phase that has ended does not come back."""
    status = pod["status"]
    before = status["phase"]
    if view.ending and view.ending[0] == "Evicted" and flavour.fails_before_the_end:
        reason, message = view.ending
        pod["status"] = {"phase": "Failed", "reason": reason, "message": message, "startTime": timestamp(view.accepted_at)}
        return
    status["startTime"] = timestamp(view.accepted_at)
    status["containerStatuses"] = [one.status() for one in view.containers]
    if view.init_containers:
        status["initContainerStatuses"] = [one.status() for one in view.init_containers]
    status["hostIP"] = view.host_ip
    if flavour.minor >= 29:
        status["hostIPs"] = [{"ip": view.host_ip}]
    if view.sandbox:
        status["podIP"], status["podIPs"] = view.pod_ip, [{"ip": view.pod_ip}]
    ended = not any(one.running for one in [*view.containers, *view.init_containers])
    if view.ending and (flavour.fails_before_the_end or (ended and not view.phase_held)):
        status["phase"] = "Failed"
        status["reason"], status["message"] = view.ending
    else:
        status["phase"] = before if before in ENDED_PHASES else _phase(view)
    if view.ending and flavour.fails_before_the_end:
        status.pop("conditions", None)
        status.pop("hostIP", None)
        for container in status["containerStatuses"]:
            container["ready"] = False
            container.pop("started", None)
    else:
        _conditions(pod, view, now, flavour)
        if view.ending and view.ending[0] == "Evicted" and status["phase"] == "Failed" and flavour.disruption_target:
            set_condition(pod, "DisruptionTarget", "True", now, flavour, "TerminationByKubelet", view.ending[1])
