"""Checks of this machine and its service, one sentence each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from orchestrator.cli.api.client import Client
from orchestrator.cli.api.connection import Connection
from orchestrator.cli.commands.operating.images import image_problem
from orchestrator.cli.errors import CliError
from orchestrator.cli.local.checks import BAD, OK, WARN, Check, level_check
from orchestrator.cli.local.teardown import uses_docker
from orchestrator.cli.view.text import GIB, clean, size
from orchestrator.dashboard.assets import browser_packages
from orchestrator.engines.docker.cleanup import DockerCleanup
from orchestrator.engines.engine import EngineError
from orchestrator.settings import Settings
from orchestrator.startup import CannotStart

SANDBOX = ("-m", "runner.sandbox")
"""Prints the available layers of the sandbox: in a separate process, as in a run."""
SANDBOX_S = 60.0


def examine(settings: Settings, connection: Connection, client: Client) -> list[Check]:
    if settings.engine == "kubernetes":
        return [*_cluster(settings), _disk(settings), _pages(), *_service(connection, client)]
    return [*_engine(settings), _sandbox_here(settings), _disk(settings), _pages(), *_service(connection, client)]


def _cluster(settings: Settings) -> Iterator[Check]:
    try:
        from orchestrator.cli.local.cluster_doctor import examine_cluster, open_cluster

        config, api = open_cluster(settings)
    except ModuleNotFoundError as error:
        yield Check("configuration", BAD, f"The Python package {error.name} is missing: install benchyard[kubernetes].")
        return
    except CannotStart as error:
        yield Check("configuration", BAD, clean(error))
        return
    try:
        yield from examine_cluster(settings, config, api)
    finally:
        api.close()


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
            problem = image_problem(settings, api)
            yield Check("images", WARN if problem else OK, problem or f"The runner image {settings.runner_image} is there.")
            output = api.try_out(settings.runner_image, ("python", *SANDBOX), "doctor", SANDBOX_S)
            yield level_check("sandbox in a runner container", output, needed=True)
        else:
            yield Check("images", BAD, image_problem(settings, api) or "")
    except EngineError as error:
        yield Check("engine", BAD, f"{clean(error)} In a checkout, scripts/ensure-engine starts one where it can.")
    finally:
        api.close()


def _disk(settings: Settings) -> Check:
    (free, total), enough = settings.room.usage(), settings.room.spare() >= 0
    sentence = f"{free / GIB:.1f} of {total / GIB:.0f} GiB are free at {clean(settings.data.absolute())}."
    return Check("disk", OK if enough else BAD, sentence if enough else f"{sentence} No run starts until there is more.")


def _pages() -> Check:
    if browser_packages().complete:
        return Check("pages", OK, "Interactive charts, mathematics and fonts are installed.")
    sentence = (
        "Charts are drawn on the server, mathematics stays TeX, fonts are the system's: the packages from npm are missing."
    )
    return Check("pages", WARN, f"{sentence} In a checkout, scripts/browser-packages gets them; then restart the service.")


def _service(connection: Connection, client: Client) -> Iterator[Check]:
    ready, why = client.is_ready()
    if not ready:
        yield Check("service", WARN, f"Not ready at {connection.url} ({why or 'no answer'}); benchyard up starts it.")
        return
    try:
        fleet = client.get("/api/fleet")
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
    yield _last_sandbox(client)


def _sandbox_here(settings: Settings) -> Check:
    """The sandbox level of a plain process on this machine, as a run of the process engine gets it."""
    try:
        done = subprocess.run([sys.executable, *SANDBOX], capture_output=True, text=True, timeout=SANDBOX_S, check=False)
        output = done.stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        output = str(error)
    return level_check("sandbox as a process", output, needed=not uses_docker(settings))


def _last_sandbox(client: Client) -> Check:
    """The sandbox level of the newest run that reported one; needs no access to the engine."""
    name = "sandbox of the last run"
    for run in client.pages("/api/container-runs", limit=20):
        for attempt in reversed(client.run(str(run["id"]))["attempts"]):
            if level := attempt["facts"].get("sandbox"):
                sentence = clean(attempt["facts"].get("sandbox_detail") or level)
                return Check(name, OK if level == "full" else WARN, f"{sentence} (run {run['id']})")
    return Check(name, WARN, "Not known before the first run: benchyard demo.")
