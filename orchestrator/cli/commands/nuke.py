"""The command `nuke`: everything of this instance goes, of every instance if asked; results only where that is said."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from orchestrator.archives.object_store import ObjectStore, Stored, StoreError, open_store
from orchestrator.cli.commands.service import down_here
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


@dataclass(frozen=True)
class InStore:
    """Archives in the object store."""

    place: str
    count: int
    size_bytes: int

    def __str__(self) -> str:
        return f"{self.count} in {self.place} ({size(self.size_bytes)})"


def nuke(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    data: Annotated[bool, typer.Option("--data", help="Also delete the data directory, results included.")] = False,
    archives: Annotated[bool, typer.Option("--archives", help="Also delete the archives in the object store.")] = False,
    all_instances: Annotated[
        bool, typer.Option("--all-instances", help="Also what other instances of Benchyard have on the engine.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Remove every container, network and volume of this instance from the engine. Asks first."""
    from orchestrator.cli.local.teardown import Removed, own_things, uses_docker

    with command(as_json) as cmd:
        data_dir = cmd.settings.data.absolute()
        if data:
            check_deletable(data_dir)
        stored = _stored(cmd, needed=archives)
        own = None if all_instances else own_things(cmd.settings)
        api = docker_cleanup.DockerCleanup(cmd.settings.docker_host)
        others = Belongings()
        try:
            found = _found(api, own) if uses_docker(cmd.settings) else Belongings()
            _confirm(cmd, found, data_dir if data else None, stored if archives else None, yes=yes, everyone=all_instances)
            stopped = down_here(cmd)
            removed = Removed()
            if uses_docker(cmd.settings):
                left = _found(api, own)  # down took some, and something may be new
                api.sweep(left)
                removed.add(_both(found, left))
                others = api.find()
        except EngineError as error:
            raise CliError(f"Not everything could be removed. {clean(error)}") from error
        finally:
            api.close()
        gone = _emptied(cmd) if archives else None
        if data and data_dir.exists():
            shutil.rmtree(data_dir)
        answer = {
            "pid": stopped["pid"],
            "containers": sorted(removed.containers),
            "networks": sorted(removed.networks),
            "volumes": sorted(removed.volumes),
            "data": str(data_dir) if data else None,
            "archives": gone.count if gone else 0,
            "archives_left": stored.count if stored and not archives else 0,
        }
        count = f"{len(removed.containers)} containers, {len(removed.networks)} networks, {len(removed.volumes)} volumes"
        also = "".join((f", archives: {gone}" if gone else "", f", and {data_dir}" if data else ""))
        cmd.out.result(answer, lambda: Text(f"Removed {count}{also}."))
        if others and not all_instances:
            cmd.out.note(
                f"{len(others.containers)} containers, {len(others.networks)} networks and {len(others.volumes)} volumes of "
                "other instances stay; --all-instances removes them as well."
            )
        if stored and stored.count and not archives:
            cmd.out.note(f"Archives stay: {clean(stored)}; --archives deletes them as well.")


def _stored(cmd: Command, *, needed: bool) -> InStore | None:
    """What is in the object store. One that does not answer stops those who want it emptied before anything is removed."""
    try:
        found = _at_store(cmd.settings, ObjectStore.list)
    except StoreError as error:
        if needed:
            raise CliError(f"Nothing was removed: {clean(error)}.") from error
        cmd.out.warn(f"Whether archives are in the object store is not known: {clean(error)}.")
        return None
    if needed and found is None:
        raise BadUsage("--archives: no object store is set (BENCHYARD_ARCHIVE_STORE or BENCHYARD_S3_BUCKET).")
    return found


def _emptied(cmd: Command) -> InStore | None:
    try:
        return _at_store(cmd.settings, ObjectStore.delete_all)
    except StoreError as error:
        raise CliError(f"Archives are left in the object store: {clean(error)}. Run this again.") from error


def _at_store(settings: Settings, work: Callable[[ObjectStore], Awaitable[list[Stored]]]) -> InStore | None:
    """Do it there and say what there is, or was; None when there is no object store."""
    try:
        store = open_store(settings)
    except BadConfiguration as error:
        raise BadUsage(f"{error}.") from error
    if store is None:
        return None

    async def count() -> InStore:
        objects = await work(store)
        return InStore(store.url, len(objects), sum(each.size_bytes for each in objects))

    return asyncio.run(count())


def _parts(found: Belongings) -> tuple[tuple[str, ...], ...]:
    return found.containers, found.networks, found.volumes


def _found(api: docker_cleanup.DockerCleanup, own: list[Own] | None) -> Belongings:
    """Of every instance where none is named."""
    if own is None:
        return api.find()
    found = Belongings()
    for each in own:
        found = _both(found, api.find(each.instance, each.owner))
    return found


def _both(one: Belongings, other: Belongings) -> Belongings:
    return Belongings(*(tuple(sorted({*a, *b})) for a, b in zip(_parts(one), _parts(other), strict=True)))


def _confirm(
    cmd: Command, found: Belongings, data_dir: Path | None, stored: InStore | None, *, yes: bool, everyone: bool
) -> None:
    if yes:
        return
    if cmd.out.as_json or not sys.stdin.isatty():
        raise BadUsage("Nobody can be asked here; say --yes if all of it shall be removed.")
    cmd.out.say("This removes, whichever instance it belongs to:" if everyone else "This removes, of this instance:")
    pairs = [
        (name, ", ".join(names) or "none")
        for name, names in zip(("containers", "networks", "volumes"), _parts(found), strict=True)
    ]
    cmd.out.console.print(facts([*pairs, ("archives", str(stored or ""))]))
    if found.volumes or data_dir:
        cmd.out.say(f"Results in the volumes{f' and in {data_dir}' if data_dir else ''} are lost for good.", "red")
    if not typer.confirm("Go on?"):
        raise CliError("Nothing was removed.")


def check_deletable(data_dir: Path) -> None:
    """Delete only what is surely ours, and never somewhere above where somebody stands."""
    if not data_dir.exists():
        return
    place = data_dir.resolve()
    if place in (Path.home(), Path.cwd().resolve()) or place in Path.cwd().resolve().parents:
        raise BadUsage(f"{data_dir} is not deleted: it is, or holds, the directory that you are in, or your home.")
    if not (data_dir / "orchestrator-id").is_file() or not (data_dir / "lock").exists():
        raise BadUsage(f"{data_dir} does not look like a data directory of Benchyard; it is not deleted.")
