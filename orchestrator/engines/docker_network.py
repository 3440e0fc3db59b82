"""What an existing runner network is good for: the engine's description in, a judgement out. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.engines.docker_options import OPT_ICC, OPT_INHIBIT_IPV4, DockerEngineConfig
from orchestrator.engines.engine import LABEL_INSTANCE, EngineError

OPT_BRIDGE_NAME = "com.docker.network.bridge.name"


@dataclass(frozen=True)
class RunnerNetwork:
    network_id: str
    bridge: str
    """Name of the bridge interface on the engine's machine."""
    gateway: str | None
    """The machine's own address on the bridge; None when it has none."""


def read_network(described: Mapping[str, Any]) -> RunnerNetwork:
    options = described.get("Options") or {}
    return RunnerNetwork(
        network_id=described["Id"],
        bridge=options.get(OPT_BRIDGE_NAME) or f"br-{described['Id'][:12]}",
        gateway=None if _inhibited(described) else _gateway(described),
    )


def is_usable(described: Mapping[str, Any], config: DockerEngineConfig) -> bool:
    """Whether runners may be put on it in this mode. Never on one that leads outside."""
    if not described.get("Internal") or described.get("Driver") != "bridge":
        return False
    if config.host_mode:
        options = described.get("Options") or {}
        return not _inhibited(described) and str(options.get(OPT_ICC)).lower() == "false"
    return True


def is_replaceable(described: Mapping[str, Any], config: DockerEngineConfig) -> bool:
    """Whether it is ours and nobody is on it, so that it can be made again with other options."""
    return (described.get("Labels") or {}).get(LABEL_INSTANCE) == config.instance and not described.get("Containers")


def refusal(config: DockerEngineConfig) -> EngineError:
    mode = "for an orchestrator on the host" if config.host_mode else "for an orchestrator in a container"
    return EngineError(
        f"Docker network {config.network} exists and is not fit {mode}: it is not internal, belongs to somebody else, or "
        f"was made for the other way of running and is in use. Stop what uses it, then: docker network rm {config.network}"
    )


def _inhibited(described: Mapping[str, Any]) -> bool:
    return str((described.get("Options") or {}).get(OPT_INHIBIT_IPV4)).lower() == "true"


def _gateway(described: Mapping[str, Any]) -> str | None:
    for pool in (described.get("IPAM") or {}).get("Config") or []:
        subnet = ipaddress.ip_network(pool["Subnet"], strict=False)
        if subnet.version == 4:
            return str(pool.get("Gateway") or next(subnet.hosts())).split("/")[0]
    return None
