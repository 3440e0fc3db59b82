"""Determines and records which installation this is, and on which machine."""

from __future__ import annotations

import asyncio
from pathlib import Path

from orchestrator.db.session import Database
from orchestrator.engines.engine import EngineError
from orchestrator.installation.identity import Own, machine_word, remember, this_machine
from orchestrator.installation.service import Installation, settle
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock


async def open_installation(settings: Settings, db: Database, data_dir: Path, clock: Clock) -> Installation:
    machine = await asyncio.to_thread(machine_of, settings)
    installation = await settle(
        db, data_dir, clock, machine=machine, wanted_name=settings.instance, as_copy=settings.as_copy
    )
    remember(data_dir, Own(installation.instance, installation.owner), machine)
    return installation


def machine_of(settings: Settings) -> str:
    """The machine's own identifier or, inside a container, its engine's. Empty if neither is available; the engine may be
    down at the moment."""
    if not settings.in_container:
        return this_machine()
    from orchestrator.engines.docker.cleanup import DockerCleanup  # late: the client of Docker is large

    api = DockerCleanup(settings.docker_host)
    try:
        return machine_word(str(api.info().get("ID") or ""))
    except EngineError:
        return ""
    finally:
        api.close()
