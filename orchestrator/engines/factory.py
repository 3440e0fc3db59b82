"""Chooses the engine of this orchestrator, and the address where its runners reach the service."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.engines.docker.options import DockerEngineConfig
from orchestrator.engines.engine import Engine
from orchestrator.settings import Settings

log = structlog.get_logger()

DOCKER_SOCKET = Path("/var/run/docker.sock")
ALIAS = "orchestrator"


@dataclass(frozen=True)
class EngineChoice:
    engine: Engine
    listen: Callable[[], Awaitable[str]]
    """Returns the address to listen on for runners; asks the engine if it depends on that."""
    public_host: str | None
    """The host name that runners use, if it is not the address itself."""

    @classmethod
    def given(cls, engine: Engine) -> EngineChoice:
        return cls(engine, _fixed("127.0.0.1"), None)


def _fixed(address: str) -> Callable[[], Awaitable[str]]:
    async def listen() -> str:
        return address

    return listen


def choose_engine(settings: Settings, instance: str, data_dir: Path, owner: str | None = None) -> EngineChoice:
    """`auto` chooses Docker if there is any sign of it: an engine that is only down for now must not be skipped."""
    kind = settings.engine
    if kind == "auto":
        kind = "docker" if settings.docker_host or os.environ.get("DOCKER_HOST") or DOCKER_SOCKET.exists() else "process"
    if kind == "process":
        from orchestrator.engines.process.engine import ProcessEngine, ProcessEngineConfig

        log.warning("no container engine: runs are local processes, less isolated", action="process_engine")
        host = settings.runner_host or "127.0.0.1"
        engine = ProcessEngine(ProcessEngineConfig(instance=instance, root=data_dir / "process-engine", owner=owner))
        return EngineChoice(engine, _fixed(host), None)
    docker = DockerEngine(
        DockerEngineConfig(
            instance=instance,
            owner=owner,
            network=settings.runner_network,
            base_url=settings.docker_host,
            orchestrator_alias=ALIAS,
            host_mode=not settings.in_container,
            runner_port=settings.effective_runner_port or None,
            pull=settings.runner_pull,
            guest_images=settings.command_images,
            guest_pull=settings.command_pull,
            guest_network=settings.command_network,
        )
    )
    if settings.in_container:
        return EngineChoice(docker, _fixed(settings.runner_host or "0.0.0.0"), ALIAS)  # noqa: S104
    listen = _fixed(settings.runner_host) if settings.runner_host else docker.listen_address
    return EngineChoice(docker, listen, ALIAS)
