"""Files of hub data sets, downloaded once into `<data>/hub/<repository>/<commit>/` and kept there for the next build.

The cache is trimmed after use: files that were used longest ago go first, those of the last hour stay.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from orchestrator.datasets.errors import DownloadFailed
from orchestrator.datasets.fetching.download import AddressRules, fetch
from orchestrator.datasets.fetching.hub import HubDataset, HubFile, ask
from orchestrator.datasets.fetching.sources import HubSplits, hub_endpoint
from orchestrator.system.files import DiskRoom

CACHE_BYTES = 2 << 30
IN_USE_S = 3600.0

Report = Callable[[str, str, int, int], None]
"""Step (`download` or `build`), file, bytes done, total bytes (0 if unknown)."""


@dataclass(frozen=True)
class Fetched:
    """Local files of the splits, and the data set that they are from."""

    dataset: HubDataset
    paths: dict[str, list[Path]]
    """Split -> its files."""

    @property
    def all_paths(self) -> list[Path]:
        return [path for paths in self.paths.values() for path in paths]


def fetch_splits(
    data_dir: Path,
    wanted: HubSplits,
    *,
    report: Report | None = None,
    room: DiskRoom | None = None,
    judge: AddressRules | None = None,
) -> Fetched:
    """Asks the hub for the commit and downloads what is not cached. Raises `BadSource` or `DownloadFailed`."""
    dataset = ask(wanted.repo, wanted.revision, judge=judge)
    endpoint = hub_endpoint()
    chosen = {split: dataset.split(wanted.config, split) for split in wanted.splits}
    room = room or DiskRoom(data_dir)
    folder = data_dir / "hub" / dataset.repo.replace("/", "--") / dataset.commit
    targets = {split: [_target(folder, file) for file in files] for split, files in chosen.items()}
    missing = [
        (file, target)
        for split, files in chosen.items()
        for file, target in zip(files, targets[split], strict=True)
        if not target.exists()
    ]
    room.require(sum(file.size or 0 for file, _ in missing), str(wanted))
    for file, target in missing:
        progress = _progress(report, target.name)
        fetch(dataset.remote(file, endpoint), target, progress=progress, room=room, judge=judge)
    for target in (target for files in targets.values() for target in files):
        os.utime(target)
    return Fetched(dataset, targets)


def trim(data_dir: Path, now: float, keep_bytes: int = CACHE_BYTES) -> list[Path]:
    """Removes cached files beyond `keep_bytes`, those used longest ago first; returns them."""
    folder = data_dir / "hub"
    files = [(path.stat().st_mtime, path) for path in folder.rglob("*") if path.is_file()]
    removed = []
    size = 0
    for used_at, path in sorted(files, reverse=True):
        size += path.stat().st_size
        if size > keep_bytes and now - used_at > IN_USE_S:
            path.unlink(missing_ok=True)
            removed.append(path)
    for path in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        with contextlib.suppress(OSError):
            path.rmdir()
    return removed


def _target(folder: Path, file: HubFile) -> Path:
    parts = PurePosixPath(file.path).parts
    if file.path.startswith("/") or ".." in parts or "\0" in file.path:
        raise DownloadFailed(f"The hub names a file {file.path[:100]!r}, which is not a path within a data set.")
    return folder.joinpath(*parts)


def _progress(report: Report | None, name: str) -> Callable[[int, int], None] | None:
    return (lambda done, total: report("download", name, done, total)) if report else None
