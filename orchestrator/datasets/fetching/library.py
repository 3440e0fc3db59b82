"""Adds datasets: decides what to download, downloads it, builds the pack, cleans up. Used by command line, API and page.

Blocking. Callers must add a name only once at a time (a later build replaces the earlier pack as a whole).
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.fetching.download import AddressRules, fetch
from orchestrator.datasets.fetching.sources import FORMATS, RemoteFile, hub_endpoint, remote_files
from orchestrator.datasets.formats.records import Format
from orchestrator.datasets.formats.source import Progress
from orchestrator.datasets.packs.build import Built, build, pack_path
from orchestrator.system.files import DiskRoom

RESERVED = frozenset({"sample"})

Report = Callable[[str, str, int, int], None]
"""Step (`download` or `build`), file, bytes done, total bytes (0 if unknown)."""


def add(
    data_dir: Path,
    name: str,
    *,
    source: str | None = None,
    release: str | None = None,
    form: str | None = None,
    sha256: str | None = None,
    report: Report | None = None,
    room: DiskRoom | None = None,
    judge: AddressRules | None = None,
) -> Built:
    """Builds the pack `name`.

    `source` is a local file or an http(s) URL; without it, the public files are downloaded (for LiveCodeBench: those of
    `release`). The format is that of the benchmark of this name, or `form`, or else LiveCodeBench's. `sha256` checks a
    single given file. `judge` says which addresses may be called; without it, all may. Raises `NoSpace` if the disk is too
    full; only a partial download is left then.
    """
    room = room or DiskRoom(data_dir)
    with room.full_is_said(f"adding {name!r}"):
        return _add(data_dir, name, source, release, form, sha256, report, room, judge)


def _add(
    data_dir: Path,
    name: str,
    source: str | None,
    release: str | None,
    form: str | None,
    sha256: str | None,
    report: Report | None,
    room: DiskRoom,
    judge: AddressRules | None,
) -> Built:
    packs = data_dir / "packs"
    pack_path(packs, name)
    if name in RESERVED:
        raise BadSource(f"{name!r} comes with Benchyard and cannot be replaced; choose another name.")
    chosen = _format(name, form)
    if source is not None and not _is_address(source):
        if release:
            raise BadSource("A release can be chosen only without --from.")
        path = Path(source).expanduser()
        _check_local(path, sha256)
        room.require(0, f"Adding {name!r}")
        own = chosen if name in FORMATS and form is None else _own(chosen)
        return build(packs, name, own, [path], origin=path.name, progress=_step(report, "build", path.name))
    files = [RemoteFile(source, sha256=sha256)] if source else remote_files(name, release, hub_endpoint())
    folder = data_dir / "downloads" / name
    paths = []
    for file in files:
        path = folder / hashlib.sha256(file.url.encode()).hexdigest()[:16] / file.name
        if not path.exists():
            fetch(file, path, progress=_step(report, "download", file.name), room=room, judge=judge)
        elif file.sha256:
            _check_local(path, file.sha256)
        paths.append(path)
    origin = source or (f"{chosen.origin} {release or ''}".strip())
    shown = ", ".join(file.name for file in files)
    try:
        return build(packs, name, chosen, paths, origin=origin, progress=_step(report, "build", shown))
    finally:
        for path in paths:
            shutil.rmtree(path.parent, ignore_errors=True)
        with contextlib.suppress(OSError):  # partial downloads from other URLs may be there
            folder.rmdir()


def check(name: str, *, source: str | None = None, release: str | None = None, form: str | None = None) -> None:
    """Checks what can be checked before a download; raises `BadSource`."""
    pack_path(Path(), name)
    if name in RESERVED:
        raise BadSource(f"{name!r} comes with Benchyard and cannot be replaced; choose another name.")
    _format(name, form)
    if source is None:
        remote_files(name, release, hub_endpoint())
    elif release:
        raise BadSource("A release can be chosen only without --from.")


def _format(name: str, form: str | None) -> Format:
    if form is not None and form not in FORMATS:
        raise BadSource(f"There is no format {form!r}. Known: {', '.join(sorted(FORMATS))}.")
    return FORMATS[form or (name if name in FORMATS else "livecodebench")]


def _own(form: Format) -> Format:
    """The format for a user's own file, without the facts known of the public one."""
    facts = {"description": f"Own problems in the format of {form.adapter}.", "licence": "", "origin": "own file"}
    return replace(form, **facts)  # type: ignore[type-var]


def _is_address(source: str) -> bool:
    return urlsplit(source).scheme in ("http", "https")


def _check_local(path: Path, sha256: str | None) -> None:
    if not path.is_file():
        raise BadSource(f"There is no file {path}.")
    if sha256 is None:
        return
    with path.open("rb") as data:
        found = hashlib.file_digest(data, "sha256").hexdigest()
    if found != sha256.lower():
        raise BadSource(f"{path} is not the file expected: its sha256 is {found}, expected {sha256}. Nothing was built.")


def _step(report: Report | None, step: str, name: str) -> Progress | None:
    return (lambda done, total: report(step, name, done, total)) if report else None
