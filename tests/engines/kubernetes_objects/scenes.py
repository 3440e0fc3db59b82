"""Scenes that bring a pod into a state worth knowing. They are played on real clusters to record it, and on the fake one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import httpx

from tests.engines.fake_kubernetes.objects.answers import Json

IMAGE = "benchyard-runner:latest"
DEAF = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
LISTENS = "trap 'exit 143' TERM; echo ready; while :; do sleep 0.1; done"
MERGE = {"content-type": "application/merge-patch+json"}
PATIENCE_S = 300


class Operator(Protocol):
    """Whoever can reach the machines of the cluster."""

    def lose(self, node: str) -> None:
        """Cut the node off, for so long that the cluster gives its pods up."""

    def heal(self, node: str) -> None: ...


@dataclass(frozen=True)
class Stage:
    """A cluster, seen through one namespace of its API."""

    client: httpx.Client
    namespace: str
    operator: Operator

    def path(self, *parts: str) -> str:
        return "/".join([f"/api/v1/namespaces/{self.namespace}/pods", *parts])

    def pod(self, name: str) -> Json:
        answer = self.client.get(self.path(name))
        assert answer.status_code == 200, answer.text
        body: Json = answer.json()
        return body

    def log(self, name: str) -> str:
        answer = self.client.get(self.path(name, "log"), params={"container": "runner"})
        return answer.text if answer.status_code == 200 else ""


Act = Callable[[Stage, Json], None]
T = TypeVar("T")


def _container(script: str, **changes: Any) -> Json:
    amounts = {"cpu": "100m", "memory": "32Mi", "ephemeral-storage": "64Mi"}
    return {
        "name": "runner",
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c", script],
        "resources": {"requests": amounts, "limits": dict(amounts)},
        **changes,
    }


def _state(pod: Json) -> Json:
    statuses = pod["status"].get("containerStatuses") or [{"state": {}}]
    state: Json = statuses[0]["state"]
    return state


def _waits_with(reason: str) -> Callable[[Json], bool]:
    return lambda pod: (_state(pod).get("waiting") or {}).get("reason") == reason


def _is(phase: str, state: str) -> Callable[[Json], bool]:
    return lambda pod: pod["status"]["phase"] == phase and state in _state(pod)


def _is_unschedulable(pod: Json) -> bool:
    return any(one.get("reason") == "Unschedulable" for one in pod["status"].get("conditions") or [])


def _end_by_deadline(stage: Stage, pod: Json) -> None:
    patch = {"spec": {"activeDeadlineSeconds": 1}}
    stage.client.patch(stage.path(pod["metadata"]["name"]), json=patch, headers=MERGE).raise_for_status()


def _delete(stage: Stage, pod: Json) -> None:
    stage.client.delete(stage.path(pod["metadata"]["name"])).raise_for_status()


def _lose(stage: Stage, pod: Json) -> None:
    stage.operator.lose(pod["spec"]["nodeName"])


@dataclass(frozen=True)
class Scene:
    name: str
    script: str
    reached: Callable[[Json], bool]
    act: Act | None = None
    """What is done once the program says that it is ready."""
    spec: Json = field(default_factory=dict)
    container: Json = field(default_factory=dict)
    settles: bool = False
    """The state is the one that stays, not the first that fits."""

    def manifest(self) -> Json:
        spec = {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 4,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "tolerations": [
                {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}
                for key in ("not-ready", "unreachable")
            ],
            "containers": [_container(self.script, **self.container)],
            **self.spec,
        }
        name = self.name.replace("_", "-")
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"scene": name}}, "spec": spec}


_HUGE = {"requests": {"cpu": "4096"}, "limits": {"cpu": "4096"}}
_SECRET = [{"name": "boot", "secret": {"secretName": "absent"}}]
_BOOT = [{"name": "boot", "mountPath": "/run/benchyard"}]
_SMALL = [{"name": "scratch", "emptyDir": {"sizeLimit": "1Mi"}}]
_SCRATCH = [{"name": "scratch", "mountPath": "/mnt"}]
_NOT_FIRST = {"shareProcessNamespace": True}
"""The kernel protects the first process of a namespace from signals of its own; here the pod's own process is the first."""
_FILL = "echo ready; head -c 8388608 /dev/zero >/mnt/full; while :; do sleep 0.1; done"

SCENES = (
    Scene("unschedulable", DEAF, _is_unschedulable, container={"resources": _HUGE}),
    Scene(
        "waiting_for_secret",
        DEAF,
        _waits_with("ContainerCreating"),
        spec={"volumes": _SECRET},
        container={"volumeMounts": _BOOT},
        settles=True,
    ),
    Scene(
        "image_never_pull",
        DEAF,
        _waits_with("ErrImageNeverPull"),
        container={"image": "localhost/absent:1", "imagePullPolicy": "Never"},
    ),
    Scene("image_invalid", DEAF, _waits_with("InvalidImageName"), container={"image": "Not/An:Image:Name"}),
    Scene("image_pull_error", DEAF, _waits_with("ErrImagePull"), container={"image": "127.0.0.1:9/absent:1"}),
    Scene("image_back_off", DEAF, _waits_with("ImagePullBackOff"), container={"image": "127.0.0.1:9/absent:1"}),
    Scene("running", LISTENS, _is("Running", "running"), settles=True),
    Scene("ended_0", "exit 0", _is("Succeeded", "terminated")),
    Scene("ended_1", "exit 1", _is("Failed", "terminated")),
    Scene("ended_137", f"sh -c 'kill -KILL $PPID'; {DEAF}", _is("Failed", "terminated"), spec=_NOT_FIRST),
    Scene("ended_143", "sh -c 'kill -TERM $PPID'; sleep 60", _is("Failed", "terminated"), spec=_NOT_FIRST),
    Scene("out_of_memory", "exec tail /dev/zero", _is("Failed", "terminated")),
    Scene(
        "init_failed",
        DEAF,
        lambda pod: pod["status"]["phase"] == "Failed",
        spec={"initContainers": [_container("exit 9", name="kit")]},
    ),
    Scene("deadline_listened", LISTENS, lambda pod: pod["status"]["phase"] == "Failed", _end_by_deadline, settles=True),
    Scene("deadline_still_running", DEAF, _is("Failed", "running"), _end_by_deadline),
    Scene("deadline_killed", DEAF, lambda pod: pod["status"]["phase"] == "Failed", _end_by_deadline, settles=True),
    Scene(
        "evicted",
        _FILL,
        lambda pod: pod["status"]["phase"] == "Failed",
        spec={"volumes": _SMALL},
        container={"volumeMounts": _SCRATCH},
        settles=True,
    ),
    Scene("terminating", DEAF, lambda pod: "deletionTimestamp" in pod["metadata"], _delete),
    Scene("lost_node", LISTENS, lambda pod: "deletionTimestamp" in pod["metadata"], _lose),
)


def play(stage: Stage, scene: Scene, settle: Callable[[Json], None]) -> Json:
    """Bring a pod into the scene's state and describe it; `settle` waits until the state is the one that stays."""
    created = stage.client.post(stage.path(), json=scene.manifest())
    assert created.status_code == 201, created.text
    name = created.json()["metadata"]["name"]
    node = None
    try:
        if scene.act is not None:
            _wait(lambda: "ready" in stage.log(name) or None, f"{name} says that it is ready")
            pod = _when(stage, name, _is("Running", "running"))
            node = pod["spec"]["nodeName"]
            scene.act(stage, pod)
        pod = _when(stage, name, scene.reached)
        if scene.settles:
            settle(pod)
            pod = _when(stage, name, scene.reached)
        return pod
    finally:
        if scene.act is _lose and node is not None:
            stage.operator.heal(node)
        stage.client.request("DELETE", stage.path(name), json={"gracePeriodSeconds": 0})


def _when(stage: Stage, name: str, reached: Callable[[Json], bool]) -> Json:
    """The pod as it was when it first fitted."""

    def fitting() -> Json | None:
        pod = stage.pod(name)
        return pod if reached(pod) else None

    return _wait(fitting, f"{name} is in its state")


def _wait(condition: Callable[[], T | None], what: str) -> T:
    end = time.monotonic() + PATIENCE_S
    while (value := condition()) is None:
        assert time.monotonic() < end, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.02)
    return value
