"""Removes an instance's containers, networks, firewall rules and local processes. Data stays."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.errors import CliError
from orchestrator.engines.docker.cleanup import Belongings, DockerCleanup
from orchestrator.engines.engine import EngineError, EngineUnreachable
from orchestrator.installation.identity import NAME_FILE, Own, recall
from orchestrator.installation.queries import INSTANCE, OWNER
from orchestrator.installation.service import Standing, look
from orchestrator.installation.wiring import machine_of
from orchestrator.settings import Settings

if TYPE_CHECKING:
    from orchestrator.db.session import Database

NOBODY = ""
"""An owner without containers: matches only those made by older versions, which have no owner."""
DOCKER_SOCKET = Path("/var/run/docker.sock")


@dataclass
class Removed:
    containers: list[str] = field(default_factory=list)
    networks: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)
    processes: list[str] = field(default_factory=list)
    """Runs of the process engine."""

    def add(self, belongings: Belongings) -> None:
        self.containers += belongings.containers
        self.networks += belongings.networks
        self.volumes += belongings.volumes

    def __bool__(self) -> bool:
        return bool(self.containers or self.networks or self.volumes or self.processes)


def uses_docker(settings: Settings) -> bool:
    """The same choice as the service makes."""
    if settings.engine == "auto":
        return bool(settings.docker_host or os.environ.get("DOCKER_HOST") or DOCKER_SOCKET.exists())
    return settings.engine == "docker"


def open_database(settings: Settings) -> Database:
    from orchestrator.db.session import Database, database_url

    url = settings.database_url.get_secret_value() if settings.database_url else None
    return Database(database_url(url, settings.data.absolute()))


def own_things(settings: Settings) -> list[Own]:
    """The labels of everything this data directory may have left on an engine. A database that was restored here and never
    started has none: its labels are those of the original.
    """
    data_dir = settings.data.absolute()
    machine = machine_of(settings)
    has_database = settings.database_url is not None or (data_dir / "benchyard.db").exists()
    if has_database and (standing := _standing(settings, data_dir, machine)) is not None:
        if standing.is_elsewhere:
            return []
        stored, owner = standing.facts.get(INSTANCE), standing.facts.get(OWNER, NOBODY)
        names = [Own(stored, owner)] if stored else []
    elif (remembered := recall(data_dir, machine)) is not None:
        names, owner = [remembered], remembered.owner
    else:
        names, owner = ([Own(settings.instance, NOBODY)] if settings.instance else []), NOBODY
    path = data_dir / NAME_FILE
    if path.exists() and (word := path.read_text().strip()):
        names.append(Own(f"by-{word}", owner))
    return list(dict.fromkeys(names))


def remove_instance(settings: Settings) -> Removed:
    """Removes everything of this data directory's instance. The service must be stopped."""
    removed = Removed()
    own = own_things(settings)
    root = settings.data.absolute() / "process-engine"
    if root.exists():
        for name in own:
            removed.processes += asyncio.run(_end_processes(name, root))
    if settings.engine == "kubernetes":
        for name in own:
            removed.containers += _remove_pods(settings, name)
    if not uses_docker(settings):
        return removed
    api = DockerCleanup(settings.docker_host)
    try:
        for name in own:
            belongings = replace(api.find(name.instance, name.owner), volumes=())  # volumes are data
            api.sweep(belongings)
            removed.add(belongings)
    except EngineUnreachable as error:
        raise CliError(f"{error} Containers of this instance may be left there; run this again later.") from error
    except EngineError as error:
        raise CliError(f"Not everything could be removed. {error}") from error
    finally:
        api.close()
    return removed


def _remove_pods(settings: Settings, own: Own) -> list[str]:
    """Removes the instance's pods in the cluster, and the object that owns them."""
    from orchestrator.engines.factory import kubernetes_config
    from orchestrator.engines.kubernetes.engine import KubernetesEngine

    async def remove() -> list[str]:
        engine = KubernetesEngine(kubernetes_config(settings, own.instance, own.owner))
        try:
            names = [facts.name for facts in await engine.list()]
            for name in names:
                await engine.remove(name)
            await engine.teardown()
            return names
        finally:
            await engine.close()

    try:
        return asyncio.run(remove())
    except EngineError as error:
        raise CliError(f"{error} Pods of this instance may be left in the cluster; run this again later.") from error


async def _end_processes(own: Own, root: Path) -> list[str]:
    from orchestrator.engines.process.engine import ProcessEngine, ProcessEngineConfig

    engine = ProcessEngine(ProcessEngineConfig(instance=own.instance, root=root, owner=own.owner))
    try:
        names = [facts.name for facts in await engine.list()]
        for name in names:
            await engine.remove(name)
        return names
    finally:
        await engine.close()


def _standing(settings: Settings, data_dir: Path, machine: str) -> Standing | None:
    """The installation according to the database; None if it cannot be reached."""
    from sqlalchemy.exc import SQLAlchemyError

    from orchestrator.db.session import DatabaseUnavailable

    async def read() -> Standing:
        database = open_database(settings)
        try:
            return await look(database, data_dir, machine)
        finally:
            await database.close()

    try:
        return asyncio.run(read())
    except (DatabaseUnavailable, SQLAlchemyError):
        return None
