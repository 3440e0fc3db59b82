"""What this machine offers and what it lacks: one check each, one sentence each."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.cli.api.client import Client
from orchestrator.cli.api.connection import Connection
from orchestrator.cli.commands.images import image_trouble
from orchestrator.cli.errors import CliError
from orchestrator.cli.local.teardown import uses_docker
from orchestrator.cli.view.text import GIB, clean, size
from orchestrator.engines.docker.cleanup import DockerCleanup
from orchestrator.engines.engine import EngineError
from orchestrator.settings import Settings

OK, WARN, BAD = "ok", "warn", "bad"
SANDBOX = ("-m", "runner.sandbox")
"""Says which layers the sandbox has where it is started; a process of its own, as in a run."""
SANDBOX_S = 60.0


@dataclass(frozen=True)
class Check:
    name: str
    verdict: str
    """`ok`, `warn` (it works, with less) or `bad` (runs cannot work)."""
    sentence: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def examine(settings: Settings, connection: Connection, client: Client) -> list[Check]:
    return [*_engine(settings), _sandbox_here(settings), _disk(settings), *_service(connection, client)]


def _engine(settings: Settings) -> Iterator[Check]:
    if not uses_docker(settings):
        yield Check(
            "engine", WARN, "No Docker here: runs are processes of this user, less isolated. Install and start Docker."
        )
        return
    api = DockerCleanup(settings.docker_host)
    try:
        host = api.host()
        machine = f"Docker {host.version} on {clean(host.system)}, {host.cpus} CPUs, {size(host.memory_bytes)}."
        yield Check("engine", OK, machine)
        if host.is_this_machine or settings.in_container:
            yield Check(
                "mode", OK, "The service can run as a process of this machine (benchyard up) or with docker compose up."
            )
        else:
            yield Check("mode", WARN, "The engine runs in a machine of its own: use docker compose up, not benchyard up.")
        if api.has_image(settings.runner_image):
            trouble = image_trouble(settings, api)
            yield Check("images", WARN if trouble else OK, trouble or f"The runner image {settings.runner_image} is there.")
            told = api.try_out(settings.runner_image, ("python", *SANDBOX), "doctor", SANDBOX_S)
            yield _level_check("sandbox in a runner container", told, needed=True)
        else:
            yield Check("images", BAD, image_trouble(settings, api) or "")
    except EngineError as error:
        yield Check("engine", BAD, f"{clean(error)} In a checkout, scripts/ensure-engine starts one where it can.")
    finally:
        api.close()


def _disk(settings: Settings) -> Check:
    (free, total), enough = settings.room.usage(), settings.room.spare() >= 0
    sentence = f"{free / GIB:.1f} of {total / GIB:.0f} GiB are free at {_short(settings.data.absolute())}."
    return Check("disk", OK if enough else BAD, sentence if enough else f"{sentence} No run starts until there is more.")


def _service(connection: Connection, client: Client) -> Iterator[Check]:
    ready, why = client.is_ready()
    if not ready:
        yield Check("service", WARN, f"Not ready at {connection.url} ({why or 'no answer'}); benchyard up starts it.")
        return
    try:
        fleet = client.fleet()
    except CliError as error:
        yield Check("service", BAD, f"It answers at {connection.url}, but: {error}")
        return
    yield Check("service", OK, f"Ready at {connection.url}.")
    engine = fleet["engine"]
    isolation = clean(engine["isolation"] or "Not known yet.")
    open_host = engine["less_isolated"] or "also reach" in isolation
    yield Check("isolation", WARN if open_host else OK, isolation)
    if engine.get("disk"):
        yield Check("disk of commands", OK if "quota." in engine["disk"] else WARN, clean(engine["disk"]))
    if fleet["banner"]:
        yield Check("dispatch", BAD, clean(fleet["banner"]))
    yield _sandbox(client.run)(client.runs(limit=20))


def _sandbox_here(settings: Settings) -> Check:
    """The level of a plain process on this machine: what a run gets with the process engine."""
    try:
        done = subprocess.run([sys.executable, *SANDBOX], capture_output=True, text=True, timeout=SANDBOX_S, check=False)
        told = done.stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        told = str(error)
    return _level_check("sandbox as a process", told, needed=not uses_docker(settings))


def _level_check(name: str, told: str, *, needed: bool) -> Check:
    """From the line that `python -m runner.sandbox` prints."""
    line = next((line for line in told.splitlines() if line.startswith("{")), "")
    if not line:
        why = clean(told.strip().splitlines()[-1]) if told.strip() else "the runner's code is not installed here"
        return Check(name, BAD if needed else WARN, f"Not known: {why}.")
    level = json.loads(line)
    if level["name"] == "none":
        return Check(name, BAD if needed else WARN, clean(level["sentence"]))
    return Check(name, OK if level["name"] == "full" else WARN, clean(level["sentence"]))


def _sandbox(detail: Callable[[str], dict[str, Any]]) -> Callable[[list[dict[str, Any]]], Check]:
    """The level that the newest run reached which tells it; also where the engine is out of this command's reach."""

    def check(runs: list[dict[str, Any]]) -> Check:
        for run in runs:
            for attempt in reversed(detail(str(run["id"]))["attempts"]):
                if level := attempt["facts"].get("sandbox"):
                    sentence = clean(attempt["facts"].get("sandbox_detail") or level)
                    return Check("sandbox of the last run", OK if level == "full" else WARN, f"{sentence} (run {run['id']})")
        return Check("sandbox of the last run", WARN, "Not known before a run has told: benchyard demo.")

    return check


def _short(path: Path) -> str:
    return clean(path)
