"""The command `adopt`: a copy of an installation takes the original's place."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer
from rich.text import Text

from orchestrator.cli.commands.service import up_here
from orchestrator.cli.context import Command, command
from orchestrator.cli.errors import BadUsage, CliError
from orchestrator.cli.local import service_process
from orchestrator.cli.local.teardown import open_database, remove_instance, uses_docker
from orchestrator.cli.view.output import JsonFlag
from orchestrator.cli.view.text import clean
from orchestrator.engines.docker.cleanup import DockerCleanup
from orchestrator.engines.engine import EngineError
from orchestrator.installation import service
from orchestrator.installation.identity import is_run_elsewhere
from orchestrator.installation.service import CannotSettle, Original, Standing
from orchestrator.installation.wiring import machine_of
from orchestrator.settings import Settings
from orchestrator.system.clock import SystemClock

SHOWN = 3


def adopt(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Although containers of the original still run on this engine.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Have a copy take the place of the installation that it came from, which must be stopped for good."""
    with command(as_json) as cmd:
        if cmd.connection.given:
            raise BadUsage("BENCHYARD_URL names a service elsewhere; adopt it on its own machine.")
        data_dir = cmd.settings.data.absolute()
        with service_process.one_at_a_time(data_dir):
            standing = asyncio.run(_look(cmd.settings))
            original = service.original_of(standing)
            if original is None:
                raise CliError(f"{data_dir} holds no copy of another installation: there is nothing to adopt.")
            if is_run_elsewhere(original.owner, standing.place):
                raise CliError("The original runs on this machine at this moment. Stop it with benchyard down, then adopt.")
            _check_containers(cmd.settings, original, take_over=take_over)
            _confirm(cmd, original, yes=yes)
            pid = service_process.stop(data_dir)
            removed = remove_instance(cmd.settings)  # of the time as a copy
            asyncio.run(_adopt(cmd.settings))
    answer = {"instance": original.instance, "containers": removed.containers, "restarted": pid is not None}
    if pid is not None:
        with command(as_json) as cmd:
            up_here(cmd)
    tail = "it was started again" if pid is not None else "start it with benchyard up"
    sentence = f"This is the installation {original.instance} from now on: schedules fire, and its open runs go on; {tail}."
    cmd.out.result(answer, lambda: Text(sentence))


async def _look(settings: Settings) -> Standing:
    database = open_database(settings)
    try:
        return await service.look(database, settings.data.absolute(), machine_of(settings))
    finally:
        await database.close()


async def _adopt(settings: Settings) -> None:
    database = open_database(settings)
    try:
        await service.adopt(database, settings.data.absolute(), SystemClock(), machine_of(settings))
    except CannotSettle as error:
        raise CliError(f"It was not adopted: {error}.") from error
    finally:
        await database.close()


def _check_containers(settings: Settings, original: Original, *, take_over: bool) -> None:
    """What runs under the original's name is the work of a living process, until somebody says that it is not."""
    if take_over or not original.owner or not uses_docker(settings):
        return
    api = DockerCleanup(settings.docker_host)
    try:
        running = api.running(original.instance, original.owner)
    except EngineError as error:
        raise CliError(f"Whether the original still runs is not known: {clean(error)}") from error
    finally:
        api.close()
    if running:
        more = f" and {len(running) - SHOWN} more" if len(running) > SHOWN else ""
        raise CliError(
            f"Containers of the original run on this engine ({', '.join(running[:SHOWN])}{more}): it seems to be alive. "
            "Stop it with benchyard down where it runs. If it is gone for good: benchyard adopt --take-over"
        )


def _confirm(cmd: Command, original: Original, *, yes: bool) -> None:
    if yes:
        return
    if cmd.out.as_json or not sys.stdin.isatty():
        raise BadUsage("Nobody can be asked here; say --yes if the original is stopped for good.")
    cmd.out.say(f"This copy becomes the installation {original.instance}. Both must not run: stop the original for good.")
    if not typer.confirm("Is the original stopped for good?"):
        raise CliError("Nothing was changed.")
