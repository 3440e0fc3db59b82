"""Backs up a running installation, and restores an installation from a backup.

The master key and the token are never in a backup, so whoever finds one cannot decrypt stored secrets. Neither is the
identity of the data directory: a backup restored elsewhere is a copy, and starts as one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from orchestrator.backups.file_format import FORMAT, BackupInfo, BadBackup, extract, read_about, write
from orchestrator.db import dump
from orchestrator.db.migrate import known_revisions, newest_revision, stored_revision
from orchestrator.installation.identity import DataLock
from orchestrator.system.files import private_directory

PARTS = ("artefacts", "archives", "packs")


@dataclass(frozen=True)
class BackupFile:
    path: Path
    size_bytes: int
    parts: dict[str, int]
    """Uncompressed bytes of each part."""


def make_backup(
    url: str, data_dir: Path, target: Path, *, parts: frozenset[str], version: str, now: datetime, force: bool = False
) -> BackupFile:
    """Write a backup to `target`, which appears only once it is complete."""
    if target.exists() and not force:
        raise BadBackup(f"{target} is there already; choose another name, or --force to replace it")
    revision = stored_revision(url)
    if revision is None:
        raise BadBackup("there is no database to back up; has the service run here?")
    if dump.dialect_of(url) != "sqlite" and revision != newest_revision():
        raise BadBackup(
            f"the database has schema {revision}, this version has {newest_revision()}; use the version that runs"
        )
    about = BackupInfo(
        program="benchyard",
        format=FORMAT,
        version=version,
        revision=revision,
        dialect=dump.dialect_of(url),
        created_at=now.isoformat(timespec="seconds"),
        instance=data_dir.name,
        contains=sorted({"database", *parts}),
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=target.parent) as folder:
        dump.dump(url, Path(folder))
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                sizes = write(file, about, _files(Path(folder), data_dir, parts))
                file.flush()
                os.fsync(file.fileno())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    return BackupFile(target, target.stat().st_size, sizes)


def _files(dumped: Path, data_dir: Path, parts: frozenset[str]) -> Iterator[tuple[str, Path]]:
    """The database first: whatever it refers to then still exists, or was deleted since."""
    for path in sorted(dumped.iterdir()):
        yield f"database/{path.name}", path
    for part in PARTS:
        if part not in parts:
            continue
        for path in sorted((data_dir / part).rglob("*")):
            if path.is_file() and not path.is_symlink() and not path.name.endswith(".part"):
                yield path.relative_to(data_dir).as_posix(), path


@dataclass(frozen=True)
class RestoreResult:
    about: BackupInfo
    replaced: bool
    has_master_key: bool


def restore_backup(path: Path, url: str, data_dir: Path, *, force: bool = False) -> RestoreResult:
    """Replace the data directory and the database by the backup. The service must not be running there."""
    about = read_about(path)
    if about.revision not in known_revisions():
        raise BadBackup(
            f"{path} was made by a newer version of Benchyard ({about.version}, schema {about.revision}); this version "
            f"knows schemas up to {newest_revision()}. Install that version or a newer one, then restore"
        )
    if about.dialect != dump.dialect_of(url):
        setting = "DATABASE_URL of a PostgreSQL database" if about.dialect == "postgresql" else "no DATABASE_URL (SQLite)"
        raise BadBackup(
            f"{path} is a backup of {about.dialect}, and cannot be restored to {dump.dialect_of(url)}: set {setting}"
        )
    replaced = not dump.is_empty(url)
    if replaced and not force:
        raise BadBackup("there is a database already, which would be replaced; nothing was changed. --force replaces it")
    private_directory(data_dir)
    lock = DataLock(data_dir)
    try:
        with tempfile.TemporaryDirectory(prefix=".restore-", dir=data_dir) as name:
            folder = Path(name)
            extract(path, folder)  # check everything before replacing anything
            dump.load(url, folder / "database", about.revision, replace=replaced)
            for part in PARTS:
                _merge(folder / part, data_dir / part)
    finally:
        lock.release()
    return RestoreResult(about, replaced, (data_dir / "master_key").exists())


def _merge(source: Path, target: Path) -> None:
    """Files of the backup replace those of the same name; others stay."""
    if not source.is_dir():
        return
    for path in sorted(source.rglob("*")):
        if path.is_file():
            goal = target / path.relative_to(source)
            goal.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.replace(goal)
    with contextlib.suppress(OSError):
        shutil.rmtree(source)
