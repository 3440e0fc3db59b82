"""Chooses the engine of this orchestrator, and the address where its runners reach the service."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from orchestrator.engines.engine import Engine
from orchestrator.settings import Settings
from orchestrator.startup import CannotStart

if TYPE_CHECKING:
    from orchestrator.engines.kubernetes.config import KubeEngineConfig

log = structlog.get_logger()

DOCKER_SOCKET = Path("/var/run/docker.sock")
ALIAS = "orchestrator"
RUNNER_SERVICE = "benchyard-runners"
"""The service of our manifests through which pods reach the runner port."""


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
    if kind == "kubernetes":
        return _kubernetes(settings, instance, owner)
    return _docker(settings, instance, owner)


def _docker(settings: Settings, instance: str, owner: str | None) -> EngineChoice:
    """Imported late: the client of Docker is large, and only this engine needs it."""
    from orchestrator.engines.docker.engine import DockerEngine
    from orchestrator.engines.docker.options import DockerEngineConfig

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


def _kubernetes(settings: Settings, instance: str, owner: str | None) -> EngineChoice:
    """Imported late: the client of Kubernetes is large, and only this engine needs it."""
    try:
        from orchestrator.engines.kubernetes.engine import KubernetesEngine
    except ModuleNotFoundError as error:
        raise CannotStart(
            f"The engine kubernetes needs the Python package {error.name}: install benchyard[kubernetes], or use the "
            "orchestrator's image, which has it."
        ) from error
    engine = KubernetesEngine(kubernetes_config(settings, instance, owner))
    everywhere = "0.0.0.0"  # noqa: S104 -- pods reach us at an address of the cluster, which is not one of ours
    return EngineChoice(engine, _fixed(settings.runner_host or everywhere), ALIAS)


def kubernetes_config(settings: Settings, instance: str, owner: str | None = None) -> KubeEngineConfig:
    """Raises `CannotStart` if nothing says where pods reach the runner port."""
    from orchestrator.engines.kubernetes.config import KubeEngineConfig, PodSecurity

    memory_mib = settings.memory_capacity_mib
    return KubeEngineConfig(
        instance=instance,
        owner=owner,
        namespace=settings.kube_namespace,
        kubeconfig=settings.kube_config,
        context=settings.kube_context,
        runner_address=_address_of_pods(settings),
        runner_port=settings.effective_runner_port or None,
        orchestrator_alias=_host(settings.runner_url) or ALIAS,
        service_account=settings.kube_service_account,
        pull_secrets=settings.kube_pull_secrets,
        runtime_class=settings.kube_runtime_class,
        user_namespaces=settings.kube_user_namespaces,
        node_selector=settings.kube_node_selector,
        tolerations=settings.kube_tolerations,
        priority_class=settings.kube_priority_class,
        queue=settings.kube_queue,
        pod_security=PodSecurity(settings.kube_pod_security),
        require_policy=settings.kube_require_policy,
        probe_targets=settings.kube_probe_targets,
        probe_image=settings.runner_image,
        vcpu_capacity=settings.vcpu_capacity,
        memory_capacity_bytes=memory_mib << 20 if memory_mib else None,
        guest_images=settings.command_images,
        guest_pull=settings.command_pull,
    )


def _address_of_pods(settings: Settings) -> str | None:
    """Where pods reach the runner port: as set, or the host of the runner URL, or the address that we listen on, or the
    service of our manifests in the cluster."""
    if settings.kube_runner_address:
        return settings.kube_runner_address
    if (host := _host(settings.runner_url)) is not None:
        return host
    if settings.runner_host and settings.runner_host not in ("0.0.0.0", "::"):  # noqa: S104
        return settings.runner_host
    if settings.in_container:
        return RUNNER_SERVICE
    raise CannotStart(
        "BENCHYARD_KUBE_RUNNER_ADDRESS is missing: set it to the address of this machine at which pods of the cluster "
        "reach the runner port."
    )


def _host(url: str | None) -> str | None:
    return urlsplit(url).hostname if url else None
