"""Builds what we ask of Kubernetes, as plain values: our request in, objects of its API out.

Pure. All hardening of runner pods is decided here and nowhere else. No text chosen by a user reaches a pod but the name of
an allowed image; there is no way to patch a pod in the settings, since a patch could undo the walls.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any

from orchestrator.engines.docker.guest_images import KIT, VARIABLE
from orchestrator.engines.docker.options import CAPABILITIES, ENVIRONMENT, GUEST_SHM_BYTES, NO_RESOLVER, tmp_bytes
from orchestrator.engines.engine import LABEL_INSTANCE, LABEL_RUN, DiskLimit, InstanceType, LaunchRequest
from orchestrator.engines.kubernetes.config import KubeEngineConfig, PodSecurity
from orchestrator.engines.launch_rules import labels_of, owner_labels, scratch_bytes

RUNNER = "runner"
LABEL_PROBE = "benchyard.probe"
"""On a pod that is no run: `list` does not return it."""
ANNOTATION_ENDING = "benchyard.ending-since"
"""When a pod was told to end, for kubelets that do not say whether it did."""
BOOT = "/run/benchyard"
BOOT_FILE = f"{BOOT}/boot"
WITH_BOOT_LINE = ("/bin/sh", "-c", f'exec "$@" <{BOOT_FILE}', "sh")
"""The boot line becomes the program's standard input."""
NOBODY = 10001
"""The user of pods that may not be root."""
GUEST_PROGRAM = (
    "import os,sys,runpy;"
    f"os.dup2(os.open('{BOOT_FILE}',os.O_RDONLY),0);"
    f"sys.path.insert(0,'{KIT}/app');"
    "runpy.run_module('runner',run_name='__main__',alter_sys=True)"
)
GUEST_COMMAND = (f"{KIT}/ld.so", "--library-path", f"{KIT}/so", f"{KIT}/bin/python3", "-I", "-B", "-u", "-c", GUEST_PROGRAM)
"""In a user's image there may be no shell, and its variables are the command's: the interpreter ignores them."""
KIT_BYTES = 256 << 20
SMALLEST_CPU_M = 10
QUEUE = "kueue.x-k8s.io/queue-name"


def pod(
    request: LaunchRequest, config: KubeEngineConfig, *, owner_uid: str, address: str | None, secret: str
) -> dict[str, Any]:
    """The pod of one attempt. `address` is where the orchestrator is; `secret` will hold its boot line."""
    labels = labels_of(request, config.instance, config.owner) | queue_label(config)
    guest = request.guest is not None
    spec: dict[str, Any] = {
        **pod_walls(config),
        **placement(request.instance_type, config),
        "activeDeadlineSeconds": request.longest_s or config.longest_s,
        "containers": [guest_container(request, config) if guest else runner_container(request, config)],
        "volumes": [boot_volume(secret, config), *(guest_volumes(request) if guest else runner_volumes(request))],
    }
    if guest:
        spec["initContainers"] = [kit_container(request, config)]
    if address is not None:
        spec["hostAliases"] = [{"ip": address, "hostnames": [config.orchestrator_alias]}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": request.name,
            "labels": labels,
            "annotations": {
                "karpenter.sh/do-not-disrupt": "true",
                "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
            },
            "ownerReferences": [owner_reference(config, owner_uid)],
        },
        "spec": spec,
    }


def queue_label(config: KubeEngineConfig) -> dict[str, str]:
    return {QUEUE: config.queue} if config.queue else {}


def pod_walls(config: KubeEngineConfig) -> dict[str, Any]:
    """Hardening of every pod that executes generated code, apart from its containers'."""
    restricted = config.pod_security is PodSecurity.RESTRICTED
    user = {"runAsNonRoot": True, "runAsUser": NOBODY, "runAsGroup": NOBODY, "fsGroup": NOBODY}
    walls: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": config.grace_s,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "shareProcessNamespace": True,  # the first process is the pod's own, which reaps orphans
        "hostNetwork": False,
        "hostPID": False,
        "hostIPC": False,
        "hostname": RUNNER,
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": [NO_RESOLVER]},
        "securityContext": {
            "seccompProfile": {"type": "RuntimeDefault"},  # without this, pods have no filter at all
            **(user if restricted else {"runAsUser": 0, "runAsGroup": 0}),
        },
    }
    if config.service_account:
        walls["serviceAccountName"] = config.service_account
    if config.pull_secrets:
        walls["imagePullSecrets"] = [{"name": name} for name in config.pull_secrets]
    if config.runtime_class:
        walls["runtimeClassName"] = config.runtime_class
    if config.user_namespaces:
        walls["hostUsers"] = False
    return walls


def placement(kind: InstanceType, config: KubeEngineConfig) -> dict[str, Any]:
    """Where the pod may run, and how soon it leaves a machine that does not answer."""
    silent = [
        {
            "key": f"node.kubernetes.io/{trouble}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": config.lost_after_s,
        }
        for trouble in ("not-ready", "unreachable")
    ]
    given = [dict(toleration) for toleration in (*config.tolerations, *kind.placement.tolerations)]
    found: dict[str, Any] = {"tolerations": silent + given}
    if selector := {**config.node_selector, **kind.placement.node_selector}:
        found["nodeSelector"] = selector
    if priority := kind.placement.priority_class or config.priority_class:
        found["priorityClassName"] = priority
    return found


def runner_container(request: LaunchRequest, config: KubeEngineConfig) -> dict[str, Any]:
    return {
        "name": RUNNER,
        "image": request.image,
        "imagePullPolicy": "IfNotPresent",
        "command": [*WITH_BOOT_LINE, *config.command],
        "env": [{"name": name, "value": value} for name, value in ENVIRONMENT.items()],
        "resources": resources(request.instance_type),
        "securityContext": container_walls(config),
        "volumeMounts": [
            {"name": "boot", "mountPath": BOOT, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 -- the pod's own volume
            {"name": "shm", "mountPath": "/dev/shm", "readOnly": True},  # noqa: S108 -- shared memory is switched off
        ],
    }


def container_walls(config: KubeEngineConfig) -> dict[str, Any]:
    restricted = config.pod_security is PodSecurity.RESTRICTED
    capabilities = {"drop": ["ALL"]} | ({} if restricted else {"add": list(CAPABILITIES)})
    return {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": restricted,
        "capabilities": capabilities,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def runner_volumes(request: LaunchRequest) -> list[dict[str, Any]]:
    return [memory_volume("tmp", tmp_bytes(request.instance_type)), memory_volume("shm", 1 << 20)]


def guest_container(request: LaunchRequest, config: KubeEngineConfig) -> dict[str, Any]:
    """A user's image, in which the runner comes as a kit. Its variables and working directory are the command's."""
    facts = {"image": request.guest, "image_id": "", "env": None, "workdir": None, "network": False}
    return {
        "name": RUNNER,
        "image": request.guest,
        "imagePullPolicy": "IfNotPresent" if config.guest_pull else "Never",
        "command": list(GUEST_COMMAND),
        "args": [],
        "env": [{"name": VARIABLE, "value": json.dumps(facts)}],
        "resources": resources(request.instance_type, kit_bytes=KIT_BYTES),
        "securityContext": container_walls(config),
        "volumeMounts": [
            {"name": "boot", "mountPath": BOOT, "readOnly": True},
            {"name": "kit", "mountPath": KIT, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 -- the pod's own volume
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108
        ],
    }


def kit_container(request: LaunchRequest, config: KubeEngineConfig) -> dict[str, Any]:
    """Copies the kit out of the runner's image before the user's image starts."""
    return {
        "name": "kit",
        "image": request.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/cp", "-r", f"{KIT}/.", "/kit/"],
        "resources": resources(request.instance_type, kit_bytes=KIT_BYTES),
        "securityContext": container_walls(config),
        "volumeMounts": [{"name": "kit", "mountPath": "/kit"}],
    }


def guest_volumes(request: LaunchRequest) -> list[dict[str, Any]]:
    kind = request.instance_type
    scratch = scratch_bytes(kind, DiskLimit.EVICTION) or kind.disk_bytes
    return [
        {"name": "kit", "emptyDir": {"sizeLimit": str(KIT_BYTES)}},
        {"name": "tmp", "emptyDir": {"sizeLimit": str(scratch)}},
        memory_volume("shm", min(GUEST_SHM_BYTES, kind.memory_bytes // 2)),
    ]


def memory_volume(name: str, size: int) -> dict[str, Any]:
    """A file system in memory; it counts as the container's."""
    return {"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": str(size)}}


def boot_volume(secret: str, config: KubeEngineConfig) -> dict[str, Any]:
    """Readable by the runner's user only; where it is not root, Kubernetes can grant that only through its group."""
    mode = 0o440 if config.pod_security is PodSecurity.RESTRICTED else 0o400
    return {"name": "boot", "secret": {"secretName": secret, "defaultMode": mode}}


def resources(kind: InstanceType, *, kit_bytes: int = 0) -> dict[str, Any]:
    """Requests equal limits: a run gets what its type promises, and no more, on every machine."""
    amounts = {
        "cpu": f"{max(SMALLEST_CPU_M, math.ceil(kind.vcpu * 1000))}m",
        "memory": str(kind.memory_bytes),
        "ephemeral-storage": str(kind.disk_bytes + kit_bytes),
    }
    return {"requests": amounts, "limits": dict(amounts)}


def secret(request: LaunchRequest, config: KubeEngineConfig, name: str, pod_uid: str) -> dict[str, Any]:
    """Holds the boot line. It belongs to its pod, and disappears with it."""
    line = request.boot_line.rstrip(b"\n") + b"\n"
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "immutable": True,
        "metadata": {
            "name": name,
            "labels": labels_of(request, config.instance, config.owner),
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": request.name, "uid": pod_uid}],
        },
        "data": {"boot": base64.b64encode(line).decode()},
    }


def secret_of(pod: dict[str, Any]) -> str | None:
    """The name of the secret that a pod waits for."""
    for volume in pod["spec"].get("volumes") or []:
        if volume["name"] == "boot" and "secret" in volume:
            return str(volume["secret"]["secretName"])
    return None


def owner_object(config: KubeEngineConfig) -> dict[str, Any]:
    """Owns every pod of this installation: deleting it removes them all. Nothing reads its data."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": config.owner_name, "labels": owner_labels(config.instance, config.owner)},
        "data": {"about": "Owns the pods of one Benchyard installation. Deleting this object removes them all."},
    }


def owner_reference(config: KubeEngineConfig, uid: str) -> dict[str, Any]:
    """`controller` lets `kubectl drain` evict the pod: it refuses pods that nobody would replace."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": config.owner_name, "uid": uid, "controller": True}


def runner_selector(config: KubeEngineConfig) -> str:
    """Selects the runners of this instance."""
    return f"{LABEL_INSTANCE}={config.instance},{LABEL_RUN},!{LABEL_PROBE}"


def instance_selector(config: KubeEngineConfig) -> str:
    return f"{LABEL_INSTANCE}={config.instance}"


def end_patch(uid: str, now: str) -> dict[str, Any]:
    """The kubelet ends the pod as if its time were up: the pod stays, with exit code and log."""
    return {"metadata": {"uid": uid, "annotations": {ANNOTATION_ENDING: now}}, "spec": {"activeDeadlineSeconds": 1}}
