"""Which machine this installation is on."""

from __future__ import annotations

from orchestrator.engines.docker.cleanup import DockerCleanup
from orchestrator.engines.engine import EngineError
from orchestrator.installation.place import machine_word, this_machine
from orchestrator.settings import Settings


def machine_of(settings: Settings) -> str:
    """Its own identifier or, seen from a container, its engine's. Empty
    where neither can be had; the engine may be down at this moment."""
    if not settings.in_container:
        return this_machine()
    api = DockerCleanup(settings.docker_host)
    try:
        return machine_word(str(api.info().get("ID") or ""))
    except EngineError:
        return ""
    finally:
        api.close()
