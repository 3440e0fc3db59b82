"""Judges whether an existing runner network can be used, from the engine's description of it. Pure."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.engines.docker.options import OPT_ICC, OPT_INHIBIT_IPV4, DockerEngineConfig
from orchestrator.engines.engine import LABEL_INSTANCE, EngineError
from orchestrator.engines.launch_rules import is_ours

OPT_BRIDGE_NAME = "com.docker.network.bridge.name"


@dataclass(frozen=True)
class RunnerNetwork:
    name: str
    network_id: str
    bridge: str
    """Name of the bridge interface on the engine's machine."""
    gateway: str | None
    """The machine's own address on the bridge; None if it has none."""


def read_network(described: Mapping[str, Any]) -> RunnerNetwork:
    options = described.get("Options") or {}
    return RunnerNetwork(
        name=described["Name"],
        network_id=described["Id"],
        bridge=options.get(OPT_BRIDGE_NAME) or f"br-{described['Id'][:12]}",
        gateway=None if _inhibited(described) else _gateway(described),
    )


def is_usable(described: Mapping[str, Any], config: DockerEngineConfig) -> bool:
    """Whether runners may be attached to it in this mode. Never if it has outside access."""
    if not described.get("Internal") or described.get("Driver") != "bridge":
        return False
    if config.host_mode:
        options = described.get("Options") or {}
        return not _inhibited(described) and str(options.get(OPT_ICC)).lower() == "false"
    return True


def is_replaceable(described: Mapping[str, Any], config: DockerEngineConfig) -> bool:
    """Whether it is ours and unused, so that it can be recreated with other options."""
    return is_ours(described.get("Labels") or {}, config.instance, config.owner) and not described.get("Containers")


def is_of_another(described: Mapping[str, Any], config: DockerEngineConfig, own_container: str | None) -> bool:
    """Whether another installation of Benchyard made it. One that we are attached to is ours to use, whatever its label."""
    labels = described.get("Labels") or {}
    if LABEL_INSTANCE not in labels or is_ours(labels, config.instance, config.owner):
        return False
    return own_container is None or own_container not in (described.get("Containers") or {})


def own_name(config: DockerEngineConfig) -> str:
    """The network we create if another installation has the configured one: a bridge has one firewall chain and one host
    called `orchestrator`, so two installations cannot share it."""
    word = hashlib.sha256(f"{config.instance}/{config.owner}".encode()).hexdigest()[:8]
    return f"{config.network}-{word}"


def refusal(config: DockerEngineConfig, name: str | None = None) -> EngineError:
    mode = "for an orchestrator on the host" if config.host_mode else "for an orchestrator in a container"
    name = name or config.network
    return EngineError(
        f"Docker network {name} exists and is not fit {mode}: it is not internal, belongs to somebody else, or "
        f"was made for the other way of running and is in use. Stop what uses it, then: docker network rm {name}"
    )


def _inhibited(described: Mapping[str, Any]) -> bool:
    return str((described.get("Options") or {}).get(OPT_INHIBIT_IPV4)).lower() == "true"


def _gateway(described: Mapping[str, Any]) -> str | None:
    for pool in (described.get("IPAM") or {}).get("Config") or []:
        subnet = ipaddress.ip_network(pool["Subnet"], strict=False)
        if subnet.version == 4:
            return str(pool.get("Gateway") or next(subnet.hosts())).split("/")[0]
    return None
