"""Finds and removes our resources on a Docker engine, by label; for the commands `down`, `nuke` and `doctor`.

Uses only the labels `benchyard.instance` and `benchyard.owner`. With an instance name, it covers that instance's resources
except those owned by another installation; without one, everything of Benchyard's. Removing what is already gone succeeds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from orchestrator.engines.docker.api import Conflict, DockerApi, NotThere
from orchestrator.engines.docker.facts import EngineHost, read_host
from orchestrator.engines.docker.host_firewall import HostGuard
from orchestrator.engines.docker.network import read_network
from orchestrator.engines.docker.options import trial_options
from orchestrator.engines.engine import LABEL_INSTANCE, LABEL_OWNER, LABEL_RUN
from orchestrator.engines.launch_rules import is_ours


@dataclass(frozen=True)
class Belongings:
    """Names of our resources."""

    containers: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.containers or self.networks or self.volumes)


class DockerCleanup(DockerApi):
    """Synchronous; raises `EngineUnreachable` if no engine answers."""

    def __init__(self, base_url: str | None) -> None:
        super().__init__(base_url, connections=2)

    def host(self) -> EngineHost:
        return read_host(self.info())

    def has_image(self, image: str) -> bool:
        return self.find_image(image) is not None

    def try_out(self, image: str, command: tuple[str, ...], instance: str, seconds: float) -> str:
        """The output of a command in a container hardened like a runner's, which is removed afterwards."""
        container = self.create(trial_options(f"benchyard-trial-{uuid4().hex[:12]}", image, command, instance))
        try:
            with self._door() as client:
                client.start(container)
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                seen = self.inspect(container)
                if seen is None or not seen["State"]["Running"]:
                    break
                time.sleep(0.1)
            return self.logs(container).decode(errors="replace")
        finally:
            self.remove(container)

    def find(self, instance: str | None = None, owner: str | None = None) -> Belongings:
        """All our resources, or those of one instance, in any state. With an owner, excludes those of other
        installations."""
        label = {"label": [LABEL_INSTANCE if instance is None else f"{LABEL_INSTANCE}={instance}"]}

        def ours(described: Mapping[str, Any]) -> bool:
            return instance is None or is_ours(described.get("Labels") or {}, instance, owner)

        with self._door() as client:
            containers = client.containers(all=True, filters=label)
            networks = client.networks(filters=label)
            volumes = client.volumes(filters=label).get("Volumes") or []
        return Belongings(
            containers=tuple(sorted(_name(each) for each in containers if ours(each))),
            networks=tuple(sorted(str(each["Name"]) for each in networks if ours(each))),
            volumes=tuple(sorted(str(each["Name"]) for each in volumes if ours(each))),
        )

    def running(self, instance: str, owner: str) -> tuple[str, ...]:
        """The installation's runners that are running now."""
        labels = [f"{LABEL_INSTANCE}={instance}", f"{LABEL_OWNER}={owner}", LABEL_RUN]
        with self._door() as client:
            return tuple(sorted(_name(each) for each in client.containers(filters={"label": labels})))

    def sweep(self, found: Belongings) -> None:
        """Remove all of it: containers first, since they use the rest; a network's firewall rules before the network."""
        for container in found.containers:
            self.remove(container)
        for network in found.networks:
            if (described := self.find_network(network)) is not None:
                seen = read_network(described)
                HostGuard(bridge=seen.bridge, gateway=seen.gateway or "", port=0).lift()
                self.remove_network(described["Id"])
        for volume in found.volumes:
            with suppress(NotThere, Conflict), self._door() as client:
                client.remove_volume(volume)


def _name(summary: Mapping[str, Any]) -> str:
    """A container's name; one that is being created has none yet."""
    names = summary.get("Names") or []
    return str(names[0]).removeprefix("/") if names else str(summary["Id"])
