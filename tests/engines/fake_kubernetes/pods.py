"""Small pods for tests that speak to the fake directly."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.engines.fake_kubernetes.cluster import NAMESPACE, FakeCluster
from tests.engines.fake_kubernetes.objects.answers import Json

IMAGE = "probe:1"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
MERGE = {"content-type": "application/merge-patch+json"}
PATIENCE_S = 120


def shell_pod(name: str, script: str = "exec sleep 60", **spec: Any) -> Json:
    """A pod with one container that executes a script."""
    amounts = spec.pop("amounts", {"cpu": "500m", "memory": "96Mi"})
    container = {
        "name": "runner",
        "image": spec.pop("image", IMAGE),
        "imagePullPolicy": spec.pop("pull", "IfNotPresent"),
        "command": ["/bin/sh", "-c", script],
        "resources": {"requests": amounts, "limits": dict(amounts)},
    }
    meta = {"name": name, "labels": {"app": "probe"}}
    base = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 4, "automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**base, "containers": [container], **spec}}


def client_of(cluster: FakeCluster) -> httpx.Client:
    headers = {"authorization": f"Bearer {cluster.access.token}"}
    return httpx.Client(base_url=cluster.server.url, headers=headers, timeout=PATIENCE_S, verify=False)


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    """The first true value of the condition."""
    end = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.01)
    return value


def state_of(pod: Json | None) -> str:
    """ "running", "terminated", "waiting", or "" where no kubelet has spoken yet."""
    statuses = ((pod or {}).get("status") or {}).get("containerStatuses") or [{"state": {"": None}}]
    return str(next(iter(statuses[0]["state"])))


def wait_for_state(cluster: FakeCluster, name: str, state: str) -> Json:
    wait_for(lambda: state_of(cluster.pod(name)) == state, f"{name} is {state}")
    pod = cluster.pod(name)
    assert pod is not None
    return pod


def wait_for_phase(cluster: FakeCluster, name: str, phase: str) -> Json:
    pod: Json = wait_for(
        lambda: (found := cluster.pod(name)) and found["status"]["phase"] == phase and found, f"{name} is {phase}"
    )
    return pod


def condition_of(pod: Json, kind: str) -> Json:
    return next((one for one in pod["status"].get("conditions") or [] if one["type"] == kind), {})
