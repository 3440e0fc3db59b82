"""Commands about this machine's installation: back up, restore, vacuum; make a copy replace the original (`adopt`)."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.commands.operating.service import up_here
from orchestrator.cli.context import Command, command, now
from orchestrator.cli.errors import BadUsage, CliError
from orchestrator.cli.local import service_process
from orchestrator.cli.local.teardown import open_database, remove_instance, uses_docker
from orchestrator.cli.view.output import JsonFlag
from orchestrator.cli.view.text import clean, size
from orchestrator.engines.docker.cleanup import DockerCleanup
from orchestrator.engines.engine import EngineError
from orchestrator.installation import service
from orchestrator.installation.identity import is_run_elsewhere
from orchestrator.installation.service import CannotSettle, Original, Standing
from orchestrator.installation.wiring import machine_of
from orchestrator.settings import Settings
from orchestrator.startup import CannotStart
from orchestrator.system.clock import SystemClock
from orchestrator.system.files import only_for_owner
from orchestrator.system.version import own_version

SHOWN = 3


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it, for example backup.tar.gz.")],
    packs: Annotated[bool, typer.Option("--packs", help="Include datasets; otherwise they must be added again.")] = False,
    archives: Annotated[
        bool, typer.Option("--archives", help="Include archives; otherwise they are written again.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file of that name.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write database and artefacts to one file, consistent while runs continue. It contains neither token nor master key."""
    from orchestrator.backups.file_format import BadBackup
    from orchestrator.backups.service import make_backup
    from orchestrator.db.dump import DumpFailed

    only_for_owner()
    with command(as_json) as cmd:
        parts = {"artefacts", *(["packs"] if packs else []), *(["archives"] if archives else [])}
        data_dir = cmd.settings.data.absolute()
        try:
            archive = make_backup(
                _database_url(cmd, "backup"),
                data_dir,
                file.absolute(),
                parts=frozenset(parts),
                version=own_version(),
                now=now(),
                force=force,
            )
        except (BadBackup, DumpFailed, CannotStart) as error:
            raise CliError(f"No backup was written: {clean(error).rstrip('.')}.") from error
        except OSError as error:
            raise CliError(f"No backup was written: {clean(error.filename or file)}: {error.strerror}.") from error
        answer = {"file": str(archive.path), "bytes": archive.size_bytes, "parts": archive.parts}
        cmd.out.result(answer, f"Wrote {clean(archive.path)} ({size(archive.size_bytes)}).")
        missing = [f", {part} (--{part})" for part in ("packs", "archives") if part not in parts]
        cmd.out.note(f"Not in it: master_key and token{''.join(missing)}.")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `benchyard backup` wrote.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the database that is there.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Restore the data directory (BENCHYARD_DATA) from a backup. The service must be stopped."""
    from orchestrator.backups.file_format import BadBackup
    from orchestrator.backups.service import restore_backup
    from orchestrator.db.dump import DumpFailed

    only_for_owner()
    with command(as_json) as cmd:
        data_dir = cmd.settings.data.absolute()
        try:
            restored = restore_backup(file.absolute(), _database_url(cmd, "restore"), data_dir, force=force)
        except (BadBackup, DumpFailed, CannotStart) as error:
            raise CliError(f"Nothing was restored: {clean(error).rstrip('.')}.") from error
        except OSError as error:
            raise CliError(
                f"The backup could not be restored: {clean(error.filename or file)}: {error.strerror}."
            ) from error
        answer = {"data": str(data_dir), "created_at": restored.about.created_at, "version": restored.about.version}
        origin = f"{clean(restored.about.created_at)} by version {clean(restored.about.version)}"
        cmd.out.result(answer, f"Restored {clean(data_dir)} as it was at {origin}.")
        if not restored.has_master_key:
            cmd.out.warn(
                "There is no master_key here: copy it to the data directory, or stored provider keys cannot be decrypted."
            )


def vacuum(as_json: JsonFlag = False) -> None:
    """Return the space of deleted results to the file system; works while the service runs."""
    from orchestrator.db.vacuum import VacuumFailed
    from orchestrator.db.vacuum import vacuum as vacuum_database

    with command(as_json) as cmd:
        in_use = service_process.holder(cmd.settings.data.absolute()) is not None
        try:
            report = vacuum_database(_database_url(cmd, "vacuum"), in_use=in_use)
        except VacuumFailed as error:
            raise CliError(f"No space was freed: {clean(error).rstrip('.')}.") from error
        answer = {"before_bytes": report.before_bytes, "after_bytes": report.after_bytes, "freed_bytes": report.freed_bytes}
        sizes = f"the database had {size(report.before_bytes)}, now {size(report.after_bytes)}"
        cmd.out.result(answer, f"Freed {size(report.freed_bytes)}: {sizes}.")


def _database_url(cmd: Command, word: str) -> str:
    from orchestrator.db.session import database_url

    if cmd.connection.given:
        raise BadUsage(f"BENCHYARD_URL names a service elsewhere; run `benchyard {word}` where its data directory is.")
    url = cmd.settings.database_url
    return database_url(url.get_secret_value() if url else None, cmd.settings.data.absolute())


def adopt(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Even if containers of the original still run on this engine.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Make a copy replace the installation it was made from, which must be stopped for good."""
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
                raise CliError("The original runs on this machine now. Stop it with benchyard down, then adopt.")
            _check_containers(cmd.settings, original, take_over=take_over)
            _confirm(cmd, original, yes=yes)
            pid = service_process.stop(data_dir)
            removed = remove_instance(cmd.settings)  # the containers it has as a copy
            asyncio.run(_adopt(cmd.settings))
    answer = {"instance": original.instance, "containers": removed.containers, "restarted": pid is not None}
    if pid is not None:
        with command(as_json) as cmd:
            up_here(cmd)
    tail = "it was started again" if pid is not None else "start it with benchyard up"
    sentence = (
        f"This is the installation {original.instance} from now on: schedules fire, and its open runs continue; {tail}."
    )
    cmd.out.result(answer, sentence)


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
    """Containers under the original's name mean that it still runs, unless --take-over says otherwise."""
    if take_over or not original.owner or not uses_docker(settings):
        return
    api = DockerCleanup(settings.docker_host)
    try:
        running = api.running(original.instance, original.owner)
    except EngineError as error:
        raise CliError(f"Cannot tell whether the original still runs: {clean(error)}") from error
    finally:
        api.close()
    if running:
        more = f" and {len(running) - SHOWN} more" if len(running) > SHOWN else ""
        raise CliError(
            f"Containers of the original run on this engine ({', '.join(running[:SHOWN])}{more}): it still seems to run. "
            "Stop it with benchyard down where it runs. If it is gone for good: benchyard adopt --take-over"
        )


def _confirm(cmd: Command, original: Original, *, yes: bool) -> None:
    if yes:
        return
    if cmd.out.as_json or not sys.stdin.isatty():
        raise BadUsage("This cannot ask for confirmation without a terminal; use --yes if the original is stopped for good.")
    cmd.out.say(f"This copy becomes the installation {original.instance}. Both must not run: stop the original for good.")
    if not typer.confirm("Is the original stopped for good?"):
        raise CliError("Nothing was changed.")
