"""Removes what an instance left on its engines: containers, networks, firewall rules, local processes. Data stays."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
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
"""An owner that nothing on an engine has: only what older versions left without one is then ours."""
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


def open_database(settings: Settings) -> Database:
    from orchestrator.db.session import Database, database_url

    given = settings.database_url.get_secret_value() if settings.database_url else None
    return Database(database_url(given, settings.data.absolute()))


def own_things(settings: Settings) -> list[Own]:
    """What this data directory may have left on an engine, by its labels. Of a database that was restored here from another
    place and never started, nothing: its names are those of the original."""
    data_dir = settings.data.absolute()
    machine = machine_of(settings)
    has_database = settings.database_url is not None or (data_dir / "benchyard.db").exists()
    if has_database and (standing := _standing(settings, data_dir, machine)) is not None:
        if standing.is_elsewhere:
            return []
        stored, owner = standing.facts.get(INSTANCE), standing.facts.get(OWNER, NOBODY)
        found = [Own(stored, owner)] if stored else []
    elif (remembered := recall(data_dir, machine)) is not None:
        found, owner = [remembered], remembered.owner
    else:
        found, owner = ([Own(settings.instance, NOBODY)] if settings.instance else []), NOBODY
    path = data_dir / NAME_FILE
    if path.exists() and (word := path.read_text().strip()):
        found.append(Own(f"by-{word}", owner))
    return list(dict.fromkeys(found))


def remove_instance(settings: Settings) -> Removed:
    """Everything of this data directory's instance. The service must be stopped."""
    removed = Removed()
    own = own_things(settings)
    root = settings.data.absolute() / "process-engine"
    if root.exists():
        for each in own:
            removed.processes += asyncio.run(_end_processes(each, root))
    if not uses_docker(settings):
        return removed
    api = DockerCleanup(settings.docker_host)
    try:
        for each in own:
            found = api.find(each.instance, each.owner)
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
    """What the database says of this installation; None when it does not answer."""
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
