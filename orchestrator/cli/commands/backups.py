"""Commands about the data of this machine's service: backup, restore, vacuum. They need no service, and work beside one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from orchestrator.cli.context import Command, command, now
from orchestrator.cli.errors import BadUsage, CliError
from orchestrator.cli.local import service_process
from orchestrator.cli.view.output import JsonFlag
from orchestrator.cli.view.text import clean, size
from orchestrator.startup import CannotStart
from orchestrator.system.files import only_for_owner
from orchestrator.system.version import own_version


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it, for example backup.tar.gz.")],
    packs: Annotated[bool, typer.Option("--packs", help="With datasets; without it they are added again by hand.")] = False,
    archives: Annotated[bool, typer.Option("--archives", help="With archives; without it they are made again.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file of that name.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write database and artefacts to one file, consistent while runs go on. Token and master key are not in it."""
    from orchestrator.backups.file_format import BadBackup
    from orchestrator.backups.service import make_backup
    from orchestrator.db.dump import DumpFailed

    only_for_owner()
    with command(as_json) as cmd:
        wanted = {"artefacts", *(["packs"] if packs else []), *(["archives"] if archives else [])}
        data_dir = cmd.settings.data.absolute()
        try:
            made = make_backup(
                _url(cmd, "backup"),
                data_dir,
                file.absolute(),
                parts=frozenset(wanted),
                version=own_version(),
                now=now(),
                force=force,
            )
        except (BadBackup, DumpFailed, CannotStart) as error:
            raise CliError(f"No backup was written: {_ended(error)}") from error
        except OSError as error:
            raise CliError(f"No backup was written: {clean(error.filename or file)}: {error.strerror}.") from error
        answer = {"file": str(made.path), "bytes": made.size_bytes, "parts": made.parts}
        cmd.out.result(answer, lambda: Text(f"Wrote {clean(made.path)} ({_size(made.size_bytes)})."))
        left = [f"{word} (--{word})" for word, there in (("packs", packs), ("archives", archives)) if not there]
        cmd.out.note(f"Not in it: master_key and token{''.join(f', {each}' for each in left)}.")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `benchyard backup` wrote.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the database that is there.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Make the data directory (BENCHYARD_DATA) what a backup says. The service must be stopped."""
    from orchestrator.backups.file_format import BadBackup
    from orchestrator.backups.service import restore_backup
    from orchestrator.db.dump import DumpFailed

    only_for_owner()
    with command(as_json) as cmd:
        data_dir = cmd.settings.data.absolute()
        try:
            done = restore_backup(file.absolute(), _url(cmd, "restore"), data_dir, force=force)
        except (BadBackup, DumpFailed, CannotStart) as error:
            raise CliError(f"Nothing was restored: {_ended(error)}") from error
        except OSError as error:
            raise CliError(f"It could not be restored: {clean(error.filename or file)}: {error.strerror}.") from error
        answer = {"data": str(data_dir), "created_at": done.about.created_at, "version": done.about.version}
        made = f"{clean(done.about.created_at)} by version {clean(done.about.version)}"
        cmd.out.result(answer, lambda: Text(f"Restored {clean(data_dir)} as it was at {made}."))
        if not done.has_master_key:
            cmd.out.warn(
                "There is no master_key here: copy it to the data directory, or stored provider keys cannot be opened."
            )


def vacuum(as_json: JsonFlag = False) -> None:
    """Give the space of deleted results back to the disk; works while the service runs."""
    from orchestrator.db.vacuum import VacuumFailed
    from orchestrator.db.vacuum import vacuum as give_back

    with command(as_json) as cmd:
        in_use = service_process.holder(cmd.settings.data.absolute()) is not None
        try:
            done = give_back(_url(cmd, "vacuum"), in_use=in_use)
        except VacuumFailed as error:
            raise CliError(f"No space was given back: {_ended(error)}") from error
        answer = {"before_bytes": done.before_bytes, "after_bytes": done.after_bytes, "freed_bytes": done.freed_bytes}
        sizes = f"the database had {_size(done.before_bytes)}, now {_size(done.after_bytes)}"
        sentence = f"Gave back {_size(done.freed_bytes)}: {sizes}."
        cmd.out.result(answer, lambda: Text(sentence))


def _url(cmd: Command, word: str) -> str:
    from orchestrator.db.session import database_url

    if cmd.connection.given:
        raise BadUsage(f"BENCHYARD_URL names a service elsewhere; run `benchyard {word}` where its data directory is.")
    given = cmd.settings.database_url
    return database_url(given.get_secret_value() if given else None, cmd.settings.data.absolute())


def _ended(error: Exception) -> str:
    return f"{clean(error).rstrip('.')}."


def _size(count: int) -> str:
    return size(count) if count >= 1 << 20 else f"{count / 1024:.0f} KiB"
