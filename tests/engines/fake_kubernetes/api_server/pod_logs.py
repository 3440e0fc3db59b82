"""What the API server gets from a kubelet: a container's log, and its counters."""

from __future__ import annotations

from collections.abc import Callable

from tests.engines.fake_kubernetes.nodes.kubelet import Kubelet
from tests.engines.fake_kubernetes.objects import answers
from tests.engines.fake_kubernetes.objects.answers import Json, Refusal
from tests.engines.fake_kubernetes.objects.resources import POD_METRICS


def _unreachable(pod: Json, container: str, host_ip: str) -> Refusal:
    meta = pod["metadata"]
    url = f"https://{host_ip}:10250/containerLogs/{meta['namespace']}/{meta['name']}/{container}"
    message = f'Get "{url}": dial tcp {host_ip}:10250: connect: no route to host'
    return Refusal(500, "InternalError", message)


def pod_log(pod: Json, query: dict[str, str], kubelets: dict[str, Kubelet], while_lost: Callable[[], None]) -> bytes:
    name, spec = pod["metadata"]["name"], pod["spec"]
    containers = [one["name"] for one in [*spec.get("initContainers", []), *spec["containers"]]]
    container = query.get("container") or containers[-1]
    if container not in containers:
        raise answers.bad_request(f"container {container} is not valid for pod {name}")
    if not spec.get("nodeName"):
        return b""
    kubelet = kubelets[spec["nodeName"]]
    if not (kubelet.reachable and kubelet.alive):
        while_lost()
        raise _unreachable(pod, container, kubelet.host_ip)
    text = kubelet.read_log(pod["metadata"]["uid"], container)
    if text is None:
        statuses = pod["status"].get("containerStatuses") or []
        waiting = next((one["state"].get("waiting") for one in statuses if one["name"] == container), None) or {}
        reason = waiting.get("reason", "ContainerCreating")
        raise answers.bad_request(f'container "{container}" in pod "{name}" is waiting to start: {reason}')
    if "tailLines" in query:
        lines = text.splitlines(keepends=True)
        text = b"".join(lines[max(0, len(lines) - int(query["tailLines"])) :])
    return text[: int(query["limitBytes"])] if "limitBytes" in query else text


def pod_metrics(pod: Json, kubelets: dict[str, Kubelet]) -> Json | None:
    """Counters as a metrics server gives them: processor time is a rate, so only memory says anything at once."""
    kubelet = kubelets.get(pod["spec"].get("nodeName", ""))
    record = kubelet.records.get(pod["metadata"]["uid"]) if kubelet else None
    live = {name: one for name, one in record.processes.items() if one.exit_code() is None} if record else {}
    if not live:
        return None
    containers = [
        {"name": name, "usage": {"cpu": f"{int(one.cpu_s() * 1e9)}n", "memory": f"{one.memory_bytes() >> 10}Ki"}}
        for name, one in live.items()
    ]
    meta = {key: pod["metadata"].get(key) for key in ("name", "namespace", "labels", "creationTimestamp")}
    head = {"kind": POD_METRICS.kind, "apiVersion": POD_METRICS.api_version, "metadata": meta}
    return {**head, "timestamp": pod["metadata"]["creationTimestamp"], "window": "15s", "containers": containers}
