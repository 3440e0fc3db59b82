"""Keeps the runner network ready for launches: existing, ours, behind the firewall, with our own container attached.

Networks get removed by hand or by `docker network prune`, or come back with another subnet, and another installation of
Benchyard may use the configured name. `ensure` is cheap while nothing has changed, so it is called in every round.
Synchronous: the engine calls it in its threads.
"""

from __future__ import annotations

import re
import socket
import threading
from pathlib import Path
from typing import Any

import structlog

from orchestrator.engines.bounded_threads import Deadline
from orchestrator.engines.docker.api import DockerApi
from orchestrator.engines.docker.host_firewall import HostGuard, lift
from orchestrator.engines.docker.network import (
    RunnerNetwork,
    is_of_another,
    is_replaceable,
    is_usable,
    own_name,
    read_network,
    refusal,
)
from orchestrator.engines.docker.options import DockerEngineConfig, network_options
from orchestrator.engines.engine import EngineError

log = structlog.get_logger()

MOUNTS = Path("/proc/self/mountinfo")
_CONTAINER_ID = re.compile(r"/containers/([0-9a-f]{64})/")


class NetworkUpkeep:
    def __init__(self, api: DockerApi, config: DockerEngineConfig) -> None:
        self._api = api
        self._config = config
        self._lock = threading.Lock()
        self._labels: dict[str, str] = {}
        self._own_container: str | None = None
        self.current: RunnerNetwork | None = None
        """As of the last check; None if unknown or known to be gone."""
        self.guarded = False

    def ensure(self, deadline: Deadline) -> RunnerNetwork:
        """The network, recreated with everything that belongs to it if it is gone."""
        with self._lock:
            deadline.check()
            described = self._find_or_make()
            network = read_network(described)
            self._attach(network, described)
            if network != self.current:
                deadline.check()
                guard = self.guard(network)
                self.guarded = guard is not None and guard.put()
                if self.current is not None or network.name != self._config.network:
                    log.warning("runner network", action="runner_network", network=network.name, gateway=network.gateway)
            self._labels = dict(described.get("Labels") or {})
            self.current = network
            return network

    def check(self) -> None:
        """Raise `EngineError` unless the network is as `ensure` left it."""
        network = self.current
        if network is None:
            raise EngineError(f"The runner network {self._config.network} is not made yet.")
        described = self._api.find_network(network.name)
        if described is None:
            raise EngineError(f"The runner network {network.name} was removed; it is being made again.")
        if read_network(described) != network:
            raise EngineError(f"The runner network {network.name} was replaced by another; runners are being moved to it.")
        if self._own_container is not None and self._own_container not in (described.get("Containers") or {}):
            raise EngineError(f"This container is not on the runner network {network.name}; it is being attached again.")

    def forget(self) -> None:
        """Called when the engine reports that it is gone."""
        self.current = None

    def remove(self) -> None:
        """Remove it and its firewall rules if it is ours and unused. Idempotent."""
        with self._lock:
            ours = own_name(self._config)
            if self._own_container is not None and self.current is not None and self.current.name == ours:
                self._api.disconnect_network(ours, self._own_container)
            for name in (self._config.network, ours):
                described = self._api.find_network(name)
                if described is not None and is_replaceable(described, self._config):
                    self._remove(described)
            self.current, self.guarded = None, False

    def guard(self, network: RunnerNetwork) -> HostGuard | None:
        port = self._config.runner_port
        if network.gateway is None or port is None or not self._config.host_mode:
            return None
        return HostGuard(bridge=network.bridge, gateway=network.gateway, port=port)

    def _find_or_make(self) -> dict[str, Any]:
        config = self._config
        if not config.host_mode:
            self._own_container = self._own_container or self._find_own_container()
        name = config.network
        described = self._api.find_network(name)
        if described and is_of_another(described, config, self._own_container):
            name = own_name(config)
            described = self._api.find_network(name)
        if described and not is_usable(described, config):
            if not is_replaceable(described, config):
                raise refusal(config, name)
            self._remove(described)
            described = None
        if described is None:
            options = network_options(config, name)
            if self.current is not None and self.current.name == name:
                options["labels"] = {**self._labels, **options["labels"]}  # docker compose goes by its own labels
            self._api.create_network(options)
            described = self._api.find_network(name)
        if described is None:
            raise EngineError(f"Docker network {name} was removed while it was being made.")
        return described

    def _attach(self, network: RunnerNetwork, described: dict[str, Any]) -> None:
        container = self._own_container
        if container is not None and container not in (described.get("Containers") or {}):
            self._api.connect_network(network.name, container, [self._config.orchestrator_alias])
            log.warning("attached to the runner network", action="network_attached", network=network.name)

    def _find_own_container(self) -> str | None:
        """The container that this process runs in, if this engine has it."""
        try:
            found = _CONTAINER_ID.search(MOUNTS.read_text())
        except OSError:
            found = None
        for name in filter(None, (found and found[1], socket.gethostname())):
            if (described := self._api.inspect(name)) is not None:
                return str(described["Id"])
        return None

    def _remove(self, described: dict[str, Any]) -> None:
        self._api.remove_network(described["Id"])
        if self._config.host_mode:
            lift(read_network(described).bridge)
