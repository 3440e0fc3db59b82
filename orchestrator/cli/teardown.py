"""Removes what an instance left on its engines: containers, networks, firewall rules, local processes. Data stays."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.cli.errors import CliError
from orchestrator.engines.docker_cleanup import Belongings, DockerCleanup
from orchestrator.engines.engine import EngineError, EngineUnreachable
from orchestrator.settings import Settings

DOCKER_SOCKET = Path("/var/run/docker.sock")


@dataclass
class Removed:
    containers: list[str] = field(default_factory=list)
    networks: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)
    processes: list[str] = field(default_factory=list)
    """Runs of the process engine."""

    def add(self, found: Belongings) -> None:
        self.containers += found.containers
        self.networks += found.networks
        self.volumes += found.volumes

    def __bool__(self) -> bool:
        return bool(self.containers or self.networks or self.volumes or self.processes)


def uses_docker(settings: Settings) -> bool:
    """The same choice as the service's."""
    if settings.engine == "auto":
        return bool(settings.docker_host or os.environ.get("DOCKER_HOST") or DOCKER_SOCKET.exists())
    return settings.engine == "docker"


def instance_names(settings: Settings) -> list[str]:
    """The names that containers of this data directory may carry: the database's, and the one made from its own."""
    data_dir = settings.data.absolute()
    names = []
    if (stored := _stored_name(settings, data_dir)) is not None:
        names.append(stored)
    elif settings.instance:
        names.append(settings.instance)
    own = data_dir / "orchestrator-id"
    if own.exists() and (word := own.read_text().strip()):
        names.append(f"by-{word}")
    return list(dict.fromkeys(names))


def remove_instance(settings: Settings) -> Removed:
    """Everything of this data directory's instance. The service must be stopped."""
    removed = Removed()
    names = instance_names(settings)
    root = settings.data.absolute() / "process-engine"
    if root.exists():
        for name in names:
            removed.processes += asyncio.run(_end_processes(name, root))
    if not uses_docker(settings):
        return removed
    api = DockerCleanup(settings.docker_host)
    try:
        for name in names:
            found = api.find(name)
            ours = Belongings(found.containers, found.networks)  # volumes are data
            api.sweep(ours)
            removed.add(ours)
    except EngineUnreachable as error:
        raise CliError(
            f"{error} What this instance left there, if anything, is still there; run this again later."
        ) from error
    except EngineError as error:
        raise CliError(f"Not everything could be removed. {error}") from error
    finally:
        api.close()
    return removed


async def _end_processes(instance: str, root: Path) -> list[str]:
    from orchestrator.engines.process_engine import ProcessEngine, ProcessEngineConfig

    engine = ProcessEngine(ProcessEngineConfig(instance=instance, root=root))
    try:
        names = [facts.name for facts in await engine.list()]
        for name in names:
            await engine.remove(name)
        return names
    finally:
        await engine.close()


def _stored_name(settings: Settings, data_dir: Path) -> str | None:
    """The instance name in the database; None when there is no database, or it does not answer."""
    from sqlalchemy.exc import SQLAlchemyError

    from orchestrator.db.session import Database, DatabaseUnavailable, database_url
    from orchestrator.db.tables import ServiceFact

    given = settings.database_url.get_secret_value() if settings.database_url else None
    if not given and not (data_dir / "benchyard.db").exists():
        return None

    async def read() -> str | None:
        database = Database(database_url(given, data_dir))
        try:
            fact = await database.read(lambda session: session.get(ServiceFact, "instance"))
            return fact.value if fact else None
        finally:
            await database.close()

    try:
        return asyncio.run(read())
    except (DatabaseUnavailable, SQLAlchemyError):
        return None
