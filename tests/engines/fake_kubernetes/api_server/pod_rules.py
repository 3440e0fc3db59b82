"""What the API server does to a pod on its way in: it fills in defaults, refuses what is invalid, limits what may change."""

from __future__ import annotations

import copy
import re
from typing import Any

from tests.engines.fake_kubernetes.flavour import Flavour
from tests.engines.fake_kubernetes.objects import answers
from tests.engines.fake_kubernetes.objects.answers import Json
from tests.engines.fake_kubernetes.objects.quantities import canonical

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_HOSTNAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_NAME_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_UPDATE_WORDS = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, "
    "`spec.activeDeadlineSeconds` or `spec.tolerations` (only additions to existing tolerations)"
)


def check_meta(kind: str, item: Json) -> None:
    """Names and labels, for objects of every kind."""
    meta = item["metadata"]
    name = meta.get("name") or ""
    if not name:
        raise answers.invalid(kind, name, "metadata.name", "Required value: name or generateName is required")
    if len(name) > 253 or not _NAME.fullmatch(name):
        raise answers.invalid(kind, name, "metadata.name", f'Invalid value: "{name}": {_NAME_WORDS}')
    for value in (meta.get("labels") or {}).values():
        if not isinstance(value, str):
            raise answers.bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: labels must be strings')
        if len(value) > 63:
            why = f'Invalid value: "{value}": must be no more than 63 characters'
            raise answers.invalid(kind, name, "metadata.labels", why)
        if not _LABEL_VALUE.fullmatch(value):
            why = f'Invalid value: "{value}": a valid label must be an empty string or consist of alphanumeric characters'
            raise answers.invalid(kind, name, "metadata.labels", why)


def check_pod(pod: Json) -> None:
    name, spec = pod["metadata"]["name"], pod.get("spec") or {}
    if not spec.get("containers"):
        raise answers.invalid("Pod", name, "spec.containers", "Required value")
    hostname = spec.get("hostname", "runner")
    if len(hostname) > 63 or not _HOSTNAME.fullmatch(hostname):
        why = f"Invalid value: \"{hostname}\": a DNS-1123 label must consist of lower case alphanumeric characters or '-'"
        raise answers.invalid("Pod", name, "spec.hostname", why)
    deadline = spec.get("activeDeadlineSeconds", 1)
    if deadline < 1:
        why = f"Invalid value: {deadline}: must be between 1 and 2147483647, inclusive"
        raise answers.invalid("Pod", name, "spec.activeDeadlineSeconds", why)
    volumes = {volume["name"] for volume in spec.get("volumes") or []}
    for index, container in enumerate(spec["containers"]):
        if not container.get("image"):
            raise answers.invalid("Pod", name, f"spec.containers[{index}].image", "Required value")
        for mount_index, mount in enumerate(container.get("volumeMounts") or []):
            if mount["name"] not in volumes:
                field = f"spec.containers[{index}].volumeMounts[{mount_index}].name"
                raise answers.invalid("Pod", name, field, f'Not found: "{mount["name"]}"')


def _fill_container(container: Json) -> None:
    tag = container["image"].rpartition("/")[2].partition(":")[2]
    pull = "Always" if tag in ("", "latest") and "@" not in container["image"] else "IfNotPresent"
    container.setdefault("imagePullPolicy", pull)
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    resources = container.setdefault("resources", {})
    for amounts in resources.values():
        amounts.update({name: canonical(text) for name, text in amounts.items()})
    if resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}


def _fill_volume(volume: Json) -> None:
    for source in ("secret", "configMap", "projected"):
        if source in volume:
            volume[source].setdefault("defaultMode", 0o644)
    if "sizeLimit" in volume.get("emptyDir", {}):
        volume["emptyDir"]["sizeLimit"] = canonical(volume["emptyDir"]["sizeLimit"])


def _tolerates(spec: Json, key: str) -> bool:
    return any(one.get("key") in (None, key) and one.get("effect") in (None, "NoExecute") for one in spec["tolerations"])


def _quality(spec: Json) -> str:
    resources = [container["resources"] for container in [*spec["containers"], *spec.get("initContainers", [])]]
    asked = [{kind: one.get(kind) or {} for kind in ("requests", "limits")} for one in resources]
    if not any(one["requests"] or one["limits"] for one in asked):
        return "BestEffort"
    exact = all(
        one["limits"].get(name) is not None and one["limits"].get(name) == one["requests"].get(name)
        for one in asked
        for name in ("cpu", "memory")
    )
    return "Guaranteed" if exact else "Burstable"


def fill_pod(pod: Json, priority: int, flavour: Flavour) -> None:
    """Defaults of the pod's fields, and of the admission plugins that are always on."""
    spec = pod["spec"]
    defaults: dict[str, Any] = {
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
    }
    for key, value in defaults.items():
        spec.setdefault(key, value)
    spec["serviceAccount"] = spec["serviceAccountName"]
    spec["priority"] = priority
    spec["tolerations"] = [*(spec.get("tolerations") or [])]
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not _tolerates(spec, key):
            spec["tolerations"].append({"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300})
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        _fill_container(container)
    for volume in spec.get("volumes") or []:
        _fill_volume(volume)
    if flavour.generations:
        pod["metadata"]["generation"] = 1
    pod["status"] = {"phase": "Pending", "qosClass": _quality(spec)}
    if flavour.generations and spec.get("schedulingGates"):
        gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
        pod["status"]["conditions"] = [{**gated, "message": "Scheduling is blocked due to non-empty scheduling gates"}]


def check_update(before: Json, after: Json) -> None:
    """Of a pod's specification only its deadline, images and further tolerations may change."""
    name = before["metadata"]["name"]
    old, new = copy.deepcopy(before["spec"]), copy.deepcopy(after["spec"])
    was, becomes = old.pop("activeDeadlineSeconds", None), new.pop("activeDeadlineSeconds", None)
    if was is not None and (becomes is None or becomes > was):
        why = f"Invalid value: {becomes}: must be less than or equal to previous value"
        raise answers.invalid("Pod", name, "spec.activeDeadlineSeconds", why)
    if becomes is not None and becomes < 1:
        why = f"Invalid value: {becomes}: must be between 1 and 2147483647, inclusive"
        raise answers.invalid("Pod", name, "spec.activeDeadlineSeconds", why)
    kept = [one for one in old.pop("tolerations", []) if one not in new.get("tolerations", [])]
    new.pop("tolerations", None)
    for container in [
        *old["containers"],
        *new["containers"],
        *old.get("initContainers", []),
        *new.get("initContainers", []),
    ]:
        container.pop("image")
    if kept or old != new:
        raise answers.invalid("Pod", name, "spec", _UPDATE_WORDS)
