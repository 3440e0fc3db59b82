"""The command `nuke`: removes everything of this instance, or of every instance; results only with a separate option."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.archives.object_store import ObjectStore, Stored, StoreError, open_store
from orchestrator.cli.commands.operating.service import down_here
from orchestrator.cli.context import Command, command
from orchestrator.cli.errors import BadUsage, CliError
from orchestrator.cli.view.output import JsonFlag, facts
from orchestrator.cli.view.text import clean, size
from orchestrator.engines.docker import cleanup as docker_cleanup
from orchestrator.engines.docker.cleanup import Belongings
from orchestrator.engines.engine import EngineError
from orchestrator.installation.identity import Own
from orchestrator.settings import Settings
from orchestrator.startup import BadConfiguration

KINDS = ("containers", "networks", "volumes")


@dataclass(frozen=True)
class StoredArchives:
    """Archives in the object store."""

    url: str
    count: int
    size_bytes: int

    def __str__(self) -> str:
        return f"{self.count} in {self.url} ({size(self.size_bytes)})"


def nuke(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    data: Annotated[bool, typer.Option("--data", help="Also delete the data directory, results included.")] = False,
    archives: Annotated[bool, typer.Option("--archives", help="Also delete the archives in the object store.")] = False,
    all_instances: Annotated[
        bool, typer.Option("--all-instances", help="Also what other instances of Benchyard have on the engine.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Remove every container, network and volume of this instance from the engine, after a confirmation."""
    from orchestrator.cli.local.teardown import Removed, own_things, uses_docker

    with command(as_json) as cmd:
        data_dir = cmd.settings.data.absolute()
        if data:
            check_deletable(data_dir)
        stored = _list_archives(cmd, needed=archives)
        owners = None if all_instances else own_things(cmd.settings)
        api = docker_cleanup.DockerCleanup(cmd.settings.docker_host)
        others = Belongings()
        try:
            listed = _list_belongings(api, owners) if uses_docker(cmd.settings) else Belongings()
            _confirm(cmd, listed, data_dir if data else None, stored if archives else None, yes=yes, everyone=all_instances)
            stopped = down_here(cmd)
            removed = Removed()
            if uses_docker(cmd.settings):
                remaining = _list_belongings(api, owners)  # `down` removed some, and there may be new ones
                api.sweep(remaining)
                removed.add(_union(listed, remaining))
                others = api.find()
        except EngineError as error:
            raise CliError(f"Not everything could be removed. {clean(error)}") from error
        finally:
            api.close()
        deleted = _delete_archives(cmd) if archives else None
        if data and data_dir.exists():
            shutil.rmtree(data_dir)
        answer = {
            "pid": stopped["pid"],
            "containers": sorted(removed.containers),
            "networks": sorted(removed.networks),
            "volumes": sorted(removed.volumes),
            "data": str(data_dir) if data else None,
            "archives": deleted.count if deleted else 0,
            "archives_left": stored.count if stored and not archives else 0,
        }
        count = f"{len(removed.containers)} containers, {len(removed.networks)} networks, {len(removed.volumes)} volumes"
        also = "".join((f", archives: {deleted}" if deleted else "", f", and {data_dir}" if data else ""))
        cmd.out.result(answer, f"Removed {count}{also}.")
        if others and not all_instances:
            cmd.out.note(
                f"{len(others.containers)} containers, {len(others.networks)} networks and {len(others.volumes)} volumes of "
                "other instances stay; --all-instances removes them as well."
            )
        if stored and stored.count and not archives:
            cmd.out.note(f"Archives stay: {clean(stored)}; --archives deletes them as well.")


def _list_archives(cmd: Command, *, needed: bool) -> StoredArchives | None:
    """The archives in the object store. If they are to be deleted, an unavailable store ends the command."""
    try:
        archives = _at_store(cmd.settings, ObjectStore.list)
    except StoreError as error:
        if needed:
            raise CliError(f"Nothing was removed: {clean(error)}.") from error
        cmd.out.warn(f"Whether archives are in the object store is not known: {clean(error)}.")
        return None
    if needed and archives is None:
        raise BadUsage("--archives: no object store is set (BENCHYARD_ARCHIVE_STORE or BENCHYARD_S3_BUCKET).")
    return archives


def _delete_archives(cmd: Command) -> StoredArchives | None:
    try:
        return _at_store(cmd.settings, ObjectStore.delete_all)
    except StoreError as error:
        raise CliError(f"Archives are left in the object store: {clean(error)}. Run this again.") from error


def _at_store(settings: Settings, work: Callable[[ObjectStore], Awaitable[list[Stored]]]) -> StoredArchives | None:
    """Runs `work` on the object store and counts the archives it returns; None without an object store."""
    try:
        store = open_store(settings)
    except BadConfiguration as error:
        raise BadUsage(f"{error}.") from error
    if store is None:
        return None

    async def count() -> StoredArchives:
        objects = await work(store)
        return StoredArchives(store.url, len(objects), sum(stored.size_bytes for stored in objects))

    return asyncio.run(count())


def _list_belongings(api: docker_cleanup.DockerCleanup, owners: list[Own] | None) -> Belongings:
    """The belongings of the named instances, or of every instance if `owners` is None."""
    if owners is None:
        return api.find()
    return _union(*(api.find(name.instance, name.owner) for name in owners))


def _union(*parts: Belongings) -> Belongings:
    names = ({name for part in parts for name in getattr(part, kind)} for kind in KINDS)
    return Belongings(*(tuple(sorted(kind)) for kind in names))


def _confirm(
    cmd: Command, listed: Belongings, data_dir: Path | None, stored: StoredArchives | None, *, yes: bool, everyone: bool
) -> None:
    if yes:
        return
    if cmd.out.as_json or not sys.stdin.isatty():
        raise BadUsage("This cannot ask for confirmation without a terminal; use --yes to remove all of it.")
    cmd.out.say("This removes, whichever instance it belongs to:" if everyone else "This removes, of this instance:")
    pairs = [(kind, ", ".join(getattr(listed, kind)) or "none") for kind in KINDS]
    cmd.out.console.print(facts([*pairs, ("archives", str(stored or ""))]))
    if listed.volumes or data_dir:
        cmd.out.say(f"Results in the volumes{f' and in {data_dir}' if data_dir else ''} are lost for good.", "red")
    if not typer.confirm("Continue?"):
        raise CliError("Nothing was removed.")


def check_deletable(data_dir: Path) -> None:
    """Allows deletion only of a Benchyard data directory, and never of the current directory, a parent of it, or the home
    directory.
    """
    if not data_dir.exists():
        return
    current, path = Path.cwd().resolve(), data_dir.resolve()
    if path in (Path.home(), current, *current.parents):
        raise BadUsage(f"{data_dir} is not deleted: it is, or holds, the directory that you are in, or your home.")
    if not (data_dir / "orchestrator-id").is_file() or not (data_dir / "lock").exists():
        raise BadUsage(f"{data_dir} does not look like a data directory of Benchyard; it is not deleted.")
