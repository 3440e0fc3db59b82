"""Commands about the service and this machine: serve, up, down, demo, doctor."""

from __future__ import annotations

import os
from dataclasses import asdict
from enum import StrEnum
from importlib.util import find_spec
from typing import Annotated

import typer
from rich.text import Text

from orchestrator.cli.api.connection import Connection, read_settings
from orchestrator.cli.commands.measuring.runs import raise_for, say_remarks, submit, wait
from orchestrator.cli.commands.operating.images import build_images, image_problem, pull_runner_image
from orchestrator.cli.context import Command, command, now
from orchestrator.cli.errors import BadUsage, CliError
from orchestrator.cli.local import demo as demo_plan
from orchestrator.cli.local import service_process
from orchestrator.cli.view.output import Columns, JsonFlag
from orchestrator.cli.view.runs import result_table
from orchestrator.cli.view.text import clean
from orchestrator.system.imports import without_collector

RUNNER_PACKAGES = ("anthropic", "openai")
"""The imports of a run of the process engine besides those of the service."""
MARK = {"ok": ("ok", "green"), "warn": ("!", "yellow"), "bad": ("x", "red")}
CHECK_COLUMNS: Columns = {"": lambda check: Text(*MARK[check["verdict"]]), "What": "name", "How it is": "sentence"}


class EngineName(StrEnum):
    DOCKER = "docker"
    KUBERNETES = "kubernetes"
    PROCESS = "process"


AsCopyFlag = Annotated[
    bool, typer.Option("--as-copy", help="Start quietly, as a copy of the installation that the data came from.")
]


def serve(as_copy: AsCopyFlag = False) -> None:
    """Run the service in the foreground; its log, one JSON object per line, goes to standard error."""
    with without_collector():
        from orchestrator.server import serve as run_server

    settings = read_settings()
    raise typer.Exit(run_server(settings.model_copy(update={"as_copy": True}) if as_copy else settings))


def up(as_copy: AsCopyFlag = False, as_json: JsonFlag = False) -> None:
    """Start the service in the background and print its address."""
    if as_copy:
        os.environ["BENCHYARD_AS_COPY"] = "true"  # the service reads its settings from the environment
    with command(as_json) as cmd:
        running = up_here(cmd)
        cmd.out.result(running, _address(running))


def up_here(cmd: Command, *, build: bool = False) -> dict[str, object]:
    """Starts the service, or describes the running one. `build`: build the runner's image if it is missing."""
    if cmd.connection.given:
        raise BadUsage("BENCHYARD_URL names a service elsewhere; unset it to start one here.")
    data_dir = cmd.settings.data.absolute()
    with service_process.one_at_a_time(data_dir):
        started = service_process.start(cmd.settings, cmd.client, lambda: _check_engine(cmd, build=build))
    with command(cmd.out.as_json) as fresh:  # the token may be new
        readiness = fresh.client.readiness()
        for problem in readiness.get("problems") or []:
            cmd.out.warn(clean(problem))
        return {
            "url": fresh.connection.url,
            "login_url": fresh.connection.login_link,
            "pid": started.pid,
            "started": not started.was_running,
            "data": str(data_dir),
            "log": str(data_dir / service_process.LOG_FILE),
            "copy_of": (readiness.get("copy_of") or {}).get("instance"),
        }


def _check_engine(cmd: Command, *, build: bool = False) -> None:
    """Reports now what would otherwise make the first run fail."""
    from orchestrator.cli.local.teardown import uses_docker
    from orchestrator.engines.docker.cleanup import DockerCleanup
    from orchestrator.engines.engine import EngineError

    settings = cmd.settings
    if settings.engine == "kubernetes":
        return  # `doctor` examines a cluster; what the service itself notices is printed after the start
    if not uses_docker(settings):
        cmd.out.warn(
            "No Docker here: runs will be processes of this user, less isolated. Install and start Docker for containers "
            "(in a checkout, scripts/ensure-engine does)."
        )
        if missing := [name for name in RUNNER_PACKAGES if find_spec(name) is None]:
            cmd.out.warn(f"Runs need {' and '.join(missing)} then: install the extra `runner` as well.")
        return
    api = DockerCleanup(settings.docker_host)
    try:
        host = api.host()
        has_image, problem = api.has_image(settings.runner_image), image_problem(settings, api)
    except EngineError as error:
        raise CliError(
            f"{error} On Debian or Ubuntu, scripts/ensure-engine of a checkout installs and starts one."
        ) from error
    finally:
        api.close()
    if not host.is_this_machine and not settings.runner_host and not settings.runner_url:
        raise CliError(
            f"The engine ({clean(host.system)}) is not on this machine's own Linux, so its containers cannot reach a "
            "service here: start it with docker compose up."
        )
    if not has_image and settings.runner_pull:
        pull_runner_image(cmd)
    elif not has_image and build:
        cmd.out.note(problem or "")
        build_images(cmd, ["runner"])
    elif problem:
        cmd.out.warn(problem)


def _address(running: dict[str, object]) -> str:
    word = "started" if running["started"] else "runs already"
    copy = ""
    if running["copy_of"]:
        copy = (
            f"\nIt is a quiet copy of the installation {running['copy_of']}: schedules, webhooks and the original's runs "
            "are held. To replace the original, stop it for good, then: benchyard adopt"
        )
    return (
        f"Benchyard {word} at {running['url']} (process {running['pid']}, log {running['log']}).\n"
        f"Open the dashboard: {running['login_url']}{copy}"
    )


def link(as_json: JsonFlag = False) -> None:
    """Print the link that signs a browser in with the installation's token."""
    with command(as_json) as cmd:
        token, url = cmd.connection.token, cmd.connection.url if cmd.connection.given else cmd.settings.address
        if token is None:
            raise CliError(
                f"No token is known for {url}: start the service (`benchyard up`), run this where its data directory is, "
                "or set BENCHYARD_TOKEN."
            )
        address = Connection(url, token).login_link
        cmd.out.result({"url": url, "login_url": address}, address)
        if not cmd.client.is_ready()[0]:
            cmd.out.warn(f"No service is ready at {cmd.connection.url} now.")


def down(as_json: JsonFlag = False) -> None:
    """Stop the service and remove its containers, networks and firewall rules. Data stays; runs continue at the next up."""
    with command(as_json) as cmd:
        stopped = down_here(cmd)
        cmd.out.result(stopped, _down_sentence(stopped))


def down_here(cmd: Command) -> dict[str, object]:
    """Stops the service of this data directory and removes what its instance left on engines."""
    from orchestrator.cli.local.teardown import Removed, remove_instance

    data_dir = cmd.settings.data.absolute()
    if not (data_dir / "lock").exists():
        pid, removed = None, Removed()  # nothing was ever started here
    else:
        with service_process.one_at_a_time(data_dir):
            pid = service_process.stop(data_dir)
            removed = remove_instance(cmd.settings)
    return {
        "pid": pid,
        "containers": removed.containers,
        "networks": removed.networks,
        "processes": removed.processes,
        "data": str(data_dir),
    }


def _down_sentence(stopped: dict[str, object]) -> str:
    parts = [f"the service (process {stopped['pid']})"] if stopped["pid"] else []
    for word in ("containers", "networks", "processes"):
        names = stopped[word]
        if isinstance(names, list) and names:
            singular = word.removesuffix("es" if word == "processes" else "s")
            parts.append(f"{len(names)} {word if len(names) > 1 else singular}")
    if not parts:
        return "Nothing of Benchyard was running here."
    return f"Stopped and removed: {', '.join(parts)}. The data stays in {stopped['data']}."


def demo(as_json: JsonFlag = False) -> None:
    """Start the service if necessary, run both demo models on the sample benchmark at once, and show the scores."""
    with command(as_json) as cmd:
        if not cmd.connection.given:
            running = up_here(cmd, build=True)
            cmd.out.note(_address(running))
    with command(as_json) as cmd:
        client, out = cmd.client, cmd.out
        demo_plan.ensure_models(client)
        instance_type = demo_plan.choose_type(client.get("/api/fleet"), len(demo_plan.MODELS))
        out.note(f"Running {' and '.join(demo_plan.MODELS)} on the sample benchmark, a container ({instance_type}) each.")
        finished = wait(cmd, submit(cmd, demo_plan.bodies(instance_type)))
        url, link = cmd.connection.url, cmd.connection.login_link
        out.result({"runs": finished, "url": url, "login_url": link}, lambda: result_table(finished, now()))
        say_remarks(cmd, finished)
        out.say()
        out.say(f"The dashboard runs at {url}. Open it: {link}")
        if not cmd.settings.in_container:  # there, whoever started the container stops it
            out.say("Stop it all with: make down (or benchyard down)")
        raise_for(finished)


def doctor(
    engine: Annotated[
        EngineName | None, typer.Option(help="Check this engine instead of the configured one.", show_default=False)
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Check engine, images, disk, service, sandbox and network isolation. Exit code 1 if runs cannot work."""
    from orchestrator.cli.local.checks import BAD
    from orchestrator.cli.local.doctor import examine

    with command(as_json) as cmd:
        settings = cmd.settings.model_copy(update={"engine": engine.value}) if engine else cmd.settings
        checks = examine(settings, cmd.connection, cmd.client)
        rows = [asdict(check) for check in checks]
        healthy = all(check.verdict != BAD for check in checks)
        cmd.out.items(rows, CHECK_COLUMNS, value={"ok": healthy, "checks": rows})
        raise typer.Exit(0 if healthy else 1)
