"""What a container gets from its pod: volumes, hosts, environment, and the references in its command."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from tests.engines.fake_kubernetes.nodes.container import Mount
from tests.engines.fake_kubernetes.objects.answers import Json
from tests.engines.fake_kubernetes.objects.quantities import amount
from tests.engines.fake_kubernetes.objects.resources import SECRETS
from tests.engines.fake_kubernetes.objects.store import Store

_REFERENCE = re.compile(r"\$(\$|\(([\w.-]+)\))")


def expanded(text: str, environment: dict[str, str]) -> str:
    """A part of a command as Kubernetes passes it on: it replaces `$(NAME)`, and `$$` means one dollar."""
    return _REFERENCE.sub(lambda match: "$" if match[1] == "$" else environment.get(match[2], match[0]), text)


def secrets_of(pod: Json, store: Store) -> dict[str, Json] | None:
    """The Secrets of its volumes; None while one is missing: the pod waits for it."""
    secrets: dict[str, Json] = {}
    for volume in pod["spec"].get("volumes") or []:
        if "secret" in volume:
            secret = store.get(SECRETS, pod["metadata"]["namespace"], volume["secret"]["secretName"])
            if secret is None:
                return None
            secrets[volume["name"]] = secret
    return secrets


def environment_of(pod: Json, container: Json, machine: dict[str, str], service: tuple[str, str]) -> dict[str, str]:
    fields = {**machine, "metadata.name": pod["metadata"]["name"]}
    environment = {"HOSTNAME": pod["spec"].get("hostname") or pod["metadata"]["name"]}
    environment |= {"KUBERNETES_SERVICE_HOST": service[0], "KUBERNETES_SERVICE_PORT": service[1]}
    for variable in container.get("env") or []:
        source = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        environment[variable["name"]] = fields[source] if source else variable.get("value", "")
    return environment


def mounts_of(pod: Json, container: Json, secrets: dict[str, Json], folder: Path) -> list[Mount]:
    """Volumes in memory are each container's own; other volumes are shared by the pod's containers."""
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or []}
    mounts = []
    for mount in container.get("volumeMounts") or []:
        volume, source = volumes[mount["name"]], folder / "volumes" / mount["name"]
        empty = volume.get("emptyDir", {})
        if empty.get("medium") == "Memory":
            size = int(amount(empty["sizeLimit"])) if "sizeLimit" in empty else None
            mounts.append(Mount(mount["mountPath"], memory_bytes=size, read_only=mount.get("readOnly", False)))
            continue
        source.mkdir(parents=True, exist_ok=True)
        for key, text in (secrets.get(mount["name"], {}).get("data") or {}).items():
            (source / key).write_bytes(base64.b64decode(text))
            (source / key).chmod(volume["secret"]["defaultMode"])
        mounts.append(Mount(mount["mountPath"], source=source))
    hosts = folder / "hosts"
    lines = ["127.0.0.1\tlocalhost"]
    lines += [f"{alias['ip']}\t{' '.join(alias['hostnames'])}" for alias in pod["spec"].get("hostAliases") or []]
    hosts.write_text("\n".join(lines) + "\n")
    return [*mounts, Mount("/etc/hosts", source=hosts)]
