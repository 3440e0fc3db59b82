"""Adds datasets: decides what to download, downloads it, builds the pack, cleans up. Used by command line, API and page.

Blocking. Callers must add a name only once at a time (a later build replaces the earlier pack as a whole).
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.fetching.download import AddressRules, fetch
from orchestrator.datasets.fetching.hub_files import Report, fetch_splits, trim
from orchestrator.datasets.fetching.sources import FORMATS, HubSplits, RemoteFile, hub_endpoint, hub_splits, remote_files
from orchestrator.datasets.formats.records import Format
from orchestrator.datasets.formats.source import Progress
from orchestrator.datasets.packs.build import Built, build, pack_path
from orchestrator.system.files import DiskRoom

__all__ = ["Order", "Report", "add", "check"]

RESERVED = frozenset({"sample"})


@dataclass(frozen=True)
class Order:
    """A dataset to add. Without `source`, it is that of the known benchmark of this name."""

    name: str
    source: str | None = None
    """A local file, an http(s) address, or `hf://owner/name` for a data set on the hub."""
    release: str | None = None
    """Of LiveCodeBench; or `github`, where a benchmark is on the hub as well."""
    form: str | None = None
    """The benchmark whose format it has; otherwise that of the benchmark of this name, or LiveCodeBench's."""
    sha256: str | None = None
    """Of a single given file."""
    revision: str | None = None
    config: str | None = None
    split: str | None = None

    @property
    def is_local(self) -> bool:
        return self.source is not None and urlsplit(self.source).scheme not in ("http", "https", "hf")

    @property
    def on_hub(self) -> HubSplits | None:
        return hub_splits(self.name, self.source, self.release, self.revision, self.config, self.split)


def add(
    data_dir: Path,
    order: Order,
    *,
    report: Report | None = None,
    room: DiskRoom | None = None,
    judge: AddressRules | None = None,
    now: Callable[[], float] = time.time,
) -> Built:
    """Builds the pack.

    `judge` says which addresses may be called; without it, all may. Raises `NoSpace` if the disk is too full; only a partial
    download is left then.
    """
    check(order)
    room = room or DiskRoom(data_dir)
    with room.full_is_said(f"adding {order.name!r}"):
        if order.is_local:
            return _from_file(data_dir, order, room, report)
        if (wanted := order.on_hub) is not None:
            return _from_hub(data_dir, order, wanted, report, room, judge, now)
        return _from_addresses(data_dir, order, report, room, judge)


def _from_file(data_dir: Path, order: Order, room: DiskRoom, report: Report | None) -> Built:
    path = Path(order.source or "").expanduser()
    _check_local(path, order.sha256)
    room.require(0, f"Adding {order.name!r}")
    chosen = _format(order)
    own = chosen if order.name in FORMATS and order.form is None else _own(chosen)
    progress = _step(report, "build", path.name)
    return build(data_dir / "packs", order.name, own, [path], origin=path.name, progress=progress)


def _from_hub(
    data_dir: Path,
    order: Order,
    wanted: HubSplits,
    report: Report | None,
    room: DiskRoom,
    judge: AddressRules | None,
    now: Callable[[], float],
) -> Built:
    form = _format(order)
    try:
        fetched = fetch_splits(data_dir, wanted, report=report, room=room, judge=judge)
        if order.source is not None:
            form = replace(_own(form), licence=fetched.dataset.licence)  # type: ignore[type-var]
        shown = ", ".join(path.name for path in fetched.all_paths)
        return build(
            data_dir / "packs",
            order.name,
            form,
            fetched.all_paths,
            origin=str(wanted),
            revision=fetched.dataset.commit,
            progress=_step(report, "build", shown),
        )
    finally:
        trim(data_dir, now())


def _from_addresses(
    data_dir: Path, order: Order, report: Report | None, room: DiskRoom, judge: AddressRules | None
) -> Built:
    form, source = _format(order), order.source
    files = [RemoteFile(source, sha256=order.sha256)] if source else remote_files(order.name, order.release, hub_endpoint())
    folder = data_dir / "downloads" / order.name
    paths = []
    for file in files:
        path = folder / hashlib.sha256(file.url.encode()).hexdigest()[:16] / file.name
        if not path.exists():
            fetch(file, path, progress=_step(report, "download", file.name), room=room, judge=judge)
        elif file.sha256:
            _check_local(path, file.sha256)
        paths.append(path)
    origin = source or (f"{form.origin} {order.release or ''}".strip())
    shown = ", ".join(file.name for file in files)
    try:
        return build(data_dir / "packs", order.name, form, paths, origin=origin, progress=_step(report, "build", shown))
    finally:
        for path in paths:
            shutil.rmtree(path.parent, ignore_errors=True)
        with contextlib.suppress(OSError):  # partial downloads from other URLs may be there
            folder.rmdir()


def check(order: Order) -> None:
    """Checks what can be checked before a download; raises `BadSource`."""
    pack_path(Path(), order.name)
    if order.name in RESERVED:
        raise BadSource(f"{order.name!r} comes with Benchyard and cannot be replaced; choose another name.")
    _format(order)
    if order.on_hub is None and order.source is None:
        remote_files(order.name, order.release, hub_endpoint())
    elif order.source is not None and order.release:
        raise BadSource("A release can be chosen only without --from.")


def _format(order: Order) -> Format:
    if order.form is not None and order.form not in FORMATS:
        raise BadSource(f"There is no format {order.form!r}. Known: {', '.join(sorted(FORMATS))}.")
    return FORMATS[order.form or (order.name if order.name in FORMATS else "livecodebench")]


def _own(form: Format) -> Format:
    """The format for a user's own file, without the facts known of the public one."""
    facts = {"description": f"Own problems in the format of {form.adapter}.", "licence": "", "origin": "own file"}
    return replace(form, **facts)  # type: ignore[type-var]


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
