"""What is asked of Kubernetes, field by field: every wall of a runner pod is here, and a change of one fails a test."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.engines.engine import InstanceType, LaunchRequest, Placement
from orchestrator.engines.kubernetes import manifest
from orchestrator.engines.kubernetes.config import KubeEngineConfig, PodSecurity
from orchestrator.engines.kubernetes.policy_probe import probe_pod

GIB = 1 << 30
KIND = InstanceType("basic", 0.25, GIB, 4 * 10**9)
REQUEST = LaunchRequest(
    name="benchyard-run-7-a2",
    run_id="7",
    attempt=2,
    instance_type=KIND,
    image="registry.example/runner@sha256:aa",
    boot_line=b'{"token": "tok-5a1e57c0ffee"}',
    longest_s=7200,
)
CONFIG = KubeEngineConfig(instance="lab", owner="o-1")
RESTRICTED = replace(CONFIG, pod_security=PodSecurity.RESTRICTED)


def made(config: KubeEngineConfig = CONFIG, request: LaunchRequest = REQUEST) -> dict[str, Any]:
    return manifest.pod(request, config, owner_uid="uid-of-owner", address="10.0.0.7", secret="benchyard-run-7-a2-ab12")


def test_the_whole_pod() -> None:
    """A snapshot: nothing is in a runner's pod that is not written here."""
    amounts = {"cpu": "250m", "memory": str(GIB), "ephemeral-storage": str(4 * 10**9)}
    assert made() == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "benchyard-run-7-a2",
            "labels": {
                "benchyard.instance": "lab",
                "benchyard.owner": "o-1",
                "benchyard.run": "7",
                "benchyard.attempt": "2",
                "benchyard.instance_type": "basic",
            },
            "annotations": {
                "karpenter.sh/do-not-disrupt": "true",
                "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
            },
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": CONFIG.owner_name,
                    "uid": "uid-of-owner",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 4,
            "activeDeadlineSeconds": 7200,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "shareProcessNamespace": True,
            "hostNetwork": False,
            "hostPID": False,
            "hostIPC": False,
            "hostname": "runner",
            "hostAliases": [{"ip": "10.0.0.7", "hostnames": ["orchestrator"]}],
            "dnsPolicy": "None",
            "dnsConfig": {"nameservers": ["203.0.113.53"]},
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, "runAsUser": 0, "runAsGroup": 0},
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{trouble}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 10,
                }
                for trouble in ("not-ready", "unreachable")
            ],
            "containers": [
                {
                    "name": "runner",
                    "image": "registry.example/runner@sha256:aa",
                    "imagePullPolicy": "IfNotPresent",
                    "command": [
                        "/bin/sh",
                        "-c",
                        'exec "$@" </run/benchyard/boot',
                        "sh",
                        "/opt/venv/bin/python",
                        "-m",
                        "runner",
                    ],
                    "env": [
                        {"name": "HOME", "value": "/tmp"},
                        {"name": "PYTHONUNBUFFERED", "value": "1"},
                        {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"},
                    ],
                    "resources": {"requests": amounts, "limits": amounts},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "privileged": False,
                        "readOnlyRootFilesystem": True,
                        "runAsNonRoot": False,
                        "capabilities": {"drop": ["ALL"], "add": ["KILL", "SETGID", "SETUID"]},
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "volumeMounts": [
                        {"name": "boot", "mountPath": "/run/benchyard", "readOnly": True},
                        {"name": "tmp", "mountPath": "/tmp"},
                        {"name": "shm", "mountPath": "/dev/shm", "readOnly": True},
                    ],
                }
            ],
            "volumes": [
                {"name": "boot", "secret": {"secretName": "benchyard-run-7-a2-ab12", "defaultMode": 0o400}},
                {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": str(64 << 20)}},
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": str(1 << 20)}},
            ],
        },
    }


def test_the_boot_line_is_in_the_secret_and_nowhere_else() -> None:
    assert "tok-5a1e57c0ffee" not in json.dumps(made())
    secret = manifest.secret(REQUEST, CONFIG, "benchyard-run-7-a2-ab12", "uid-of-pod")
    assert base64.b64decode(secret["data"]["boot"]) == b'{"token": "tok-5a1e57c0ffee"}\n'
    assert secret["immutable"] is True
    assert secret["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "benchyard-run-7-a2", "uid": "uid-of-pod"}
    ]
    assert manifest.secret_of(made()) == secret["metadata"]["name"]


def test_a_restricted_namespace_gets_no_root_and_no_capability() -> None:
    """What the standard `restricted` demands; the boot line is readable through the group, which is the only way."""
    spec = made(RESTRICTED)["spec"]
    assert spec["securityContext"] == {
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsNonRoot": True,
        "runAsUser": 10001,
        "runAsGroup": 10001,
        "fsGroup": 10001,
    }
    walls = spec["containers"][0]["securityContext"]
    assert (walls["runAsNonRoot"], walls["capabilities"]) == (True, {"drop": ["ALL"]})
    assert spec["volumes"][0]["secret"]["defaultMode"] == 0o440


def test_settings_of_all_pods_and_of_the_type() -> None:
    config = replace(
        CONFIG,
        service_account="runner",
        pull_secrets=("login",),
        runtime_class="gvisor",
        user_namespaces=True,
        node_selector={"pool": "bench", "arch": "amd64"},
        tolerations=({"key": "bench", "operator": "Exists"},),
        priority_class="low",
        queue="lab-queue",
    )
    placement = Placement({"pool": "gpu"}, ({"key": "gpu", "operator": "Exists"},), "high")
    pod = made(config, replace(REQUEST, instance_type=replace(KIND, placement=placement)))
    spec = pod["spec"]
    assert spec["serviceAccountName"] == "runner"
    assert spec["imagePullSecrets"] == [{"name": "login"}]
    assert spec["runtimeClassName"] == "gvisor"
    assert spec["hostUsers"] is False
    assert spec["nodeSelector"] == {"pool": "gpu", "arch": "amd64"}, "the type's own goes before"
    assert [toleration["key"] for toleration in spec["tolerations"][2:]] == ["bench", "gpu"]
    assert spec["priorityClassName"] == "high"
    assert pod["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "lab-queue"
    assert made(config)["spec"]["priorityClassName"] == "low"


@pytest.mark.parametrize("config", [CONFIG, RESTRICTED], ids=["baseline", "restricted"])
def test_a_users_image_has_the_same_walls(config: KubeEngineConfig) -> None:
    guest = made(config, replace(REQUEST, guest="team/tool:1"))["spec"]
    runner = made(config)["spec"]
    both = ("restartPolicy", "automountServiceAccountToken", "securityContext", "dnsPolicy", "dnsConfig", "hostNetwork")
    assert {key: guest[key] for key in both} == {key: runner[key] for key in both}
    for container in (*guest["containers"], *guest["initContainers"]):
        assert container["securityContext"] == runner["containers"][0]["securityContext"]
    assert guest["containers"][0]["image"] == "team/tool:1"
    assert guest["initContainers"][0]["image"] == REQUEST.image
    assert {"name": "kit", "mountPath": "/opt/benchyard-kit", "readOnly": True} in guest["containers"][0]["volumeMounts"]
    assert "/bin/sh" not in guest["containers"][0]["command"], "a user's image may have no shell"
    sizes = {volume["name"]: volume.get("emptyDir") for volume in guest["volumes"]}
    assert sizes["tmp"] == {"sizeLimit": str(4 * 10**9)}, "the disk of its type"


def test_an_image_of_a_user_is_not_pulled_if_that_is_forbidden() -> None:
    request = replace(REQUEST, guest="team/tool:1")
    assert made(replace(CONFIG, guest_pull=False), request)["spec"]["containers"][0]["imagePullPolicy"] == "Never"
    assert made(CONFIG, request)["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"


def test_the_probe_is_selected_like_a_runner_and_not_listed_as_one() -> None:
    probe = probe_pod(CONFIG, "image", "uid", "10.0.0.7")
    assert "benchyard.run" in probe["metadata"]["labels"], "or the policy would not apply to it"
    assert probe["metadata"]["labels"]["benchyard.probe"] == "policy"
    assert manifest.runner_selector(CONFIG) == "benchyard.instance=lab,benchyard.run,!benchyard.probe"
    queued = probe_pod(replace(CONFIG, queue="lab-queue"), "image", "uid", "10.0.0.7")
    assert queued["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "lab-queue", "or a strict Kueue would never admit it"
    runner = made()["spec"]
    for key in ("securityContext", "dnsPolicy", "automountServiceAccountToken", "hostNetwork", "restartPolicy"):
        assert probe["spec"][key] == runner[key]
    assert probe["spec"]["containers"][0]["securityContext"] == runner["containers"][0]["securityContext"]


def test_names_of_installations_differ_and_are_accepted() -> None:
    names = {KubeEngineConfig(instance, owner).owner_name for instance in ("lab", "Lab", "l_a.b") for owner in ("a", "b")}
    assert len(names) == 6
    assert all(name == name.lower() and "_" not in name and "." not in name and len(name) <= 63 for name in names)


def test_a_small_type_gets_the_least_that_a_kubelet_takes() -> None:
    tiny = InstanceType("tiny", 0.0001, 1 << 20, 10**6)
    assert manifest.resources(tiny)["limits"]["cpu"] == "10m"
