"""The format of a backup file: a gzip-compressed tar archive.

`about.json` comes first, with the program's version, the format, the schema and the kind of database. The files follow, and
`manifest.json` comes last, with size and sha256 of each. A truncated or altered file is not restored.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

FORMAT = 1
ABOUT, MANIFEST = "about.json", "manifest.json"
ROOTS = ("database", "artefacts", "archives", "packs")
PIECE = 1 << 20
MAX_JSON = 64 << 20


class BadBackup(Exception):
    """The file cannot be restored; the message says why."""


@dataclass(frozen=True)
class BackupInfo:
    program: str
    format: int
    version: str
    revision: str
    """The schema revision of the database."""
    dialect: str
    created_at: str
    instance: str
    contains: list[str]


def write(target: IO[bytes], about: BackupInfo, files: Iterable[tuple[str, Path]]) -> dict[str, int]:
    """Write a backup of (name inside, file). Returns the bytes per top-level folder. Files that vanish meanwhile are left
    out."""
    sums: dict[str, dict[str, Any]] = {}
    totals: dict[str, int] = {}
    with tarfile.open(fileobj=target, mode="w:gz", compresslevel=1) as tar:
        _add_json(tar, ABOUT, asdict(about))
        for name, path in files:
            try:
                file = path.open("rb")
            except FileNotFoundError:
                continue  # removed since it was listed: its run was deleted, or its archive expired
            with file:
                hashed = _HashingReader(file, os.fstat(file.fileno()).st_size)
                info = tarfile.TarInfo(name)
                info.size, info.mode = hashed.size, 0o600
                tar.addfile(info, hashed)
            sums[name] = {"bytes": hashed.size, "sha256": hashed.sha256.hexdigest()}
            root = name.partition("/")[0]
            totals[root] = totals.get(root, 0) + hashed.size
        _add_json(tar, MANIFEST, {"files": sums})
    return totals


def read_about(path: Path) -> BackupInfo:
    """Read the file's header without the rest."""
    with _opened(path) as tar:
        first = tar.next()
        if first is None or first.name != ABOUT:
            raise BadBackup(f"{path} is not a backup of Benchyard")
        return _about(path, _json(tar, first))


def extract(path: Path, folder: Path) -> BackupInfo:
    """Unpack everything into an empty folder and compare it with the manifest."""
    sums: dict[str, dict[str, Any]] = {}
    manifest: dict[str, Any] | None = None
    about: BackupInfo | None = None
    try:
        with _opened(path) as tar:
            for member in tar:
                if about is None:
                    if member.name != ABOUT:
                        raise BadBackup(f"{path} is not a backup of Benchyard")
                    about = _about(path, _json(tar, member))
                elif member.name == MANIFEST:
                    manifest = _json(tar, member)
                else:
                    sums[member.name] = _unpack(tar, member, folder)
    except (EOFError, tarfile.TarError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise BadBackup(f"{path} is damaged or cut short ({error})") from error
    if about is None or manifest is None:
        raise BadBackup(f"{path} is cut short: its manifest is missing")
    expected = manifest.get("files")
    if not isinstance(expected, dict) or sums != expected:
        names = sorted(set(sums) ^ set(expected or {})) or [
            name for name in sums if sums[name] != (expected or {}).get(name)
        ]
        raise BadBackup(f"{path} is damaged: {names[0] if names else MANIFEST} is not what the manifest says")
    return about


def _unpack(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> dict[str, Any]:
    parts = PurePosixPath(member.name).parts
    if not member.isreg() or len(parts) < 2 or parts[0] not in ROOTS or ".." in parts or member.name.startswith("/"):
        raise BadBackup(f"the backup has an entry that does not belong there: {member.name[:100]!r}")
    target = folder.joinpath(*parts)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    source = tar.extractfile(member)
    assert source is not None
    digest, size = hashlib.sha256(), 0
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        while piece := source.read(PIECE):
            digest.update(piece)
            size += len(piece)
            file.write(piece)
    return {"bytes": size, "sha256": digest.hexdigest()}


def _opened(path: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(path, mode="r:gz")
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise BadBackup(f"{path} is not a backup of Benchyard ({error})") from error
    except OSError as error:
        if error.errno is None:  # gzip raises this if the file is not gzip
            raise BadBackup(f"{path} is not a backup of Benchyard ({error})") from error
        raise BadBackup(f"{path} cannot be read: {error.strerror}") from error


def _about(path: Path, fields: dict[str, Any]) -> BackupInfo:
    try:
        about = BackupInfo(**fields)
    except TypeError as error:
        raise BadBackup(f"{path} is not a backup of Benchyard") from error
    if about.program != "benchyard" or about.format != FORMAT:
        raise BadBackup(f"{path} has the backup format {about.format!r}; this version reads format {FORMAT}")
    return about


def _json(tar: tarfile.TarFile, member: tarfile.TarInfo) -> dict[str, Any]:
    source = tar.extractfile(member) if member.isreg() and member.size <= MAX_JSON else None
    try:
        document = json.loads(source.read()) if source else None
    except ValueError as error:
        raise BadBackup(f"the backup's {member.name} is damaged") from error
    if not isinstance(document, dict):
        raise BadBackup(f"the backup's {member.name} is damaged")
    return document


def _add_json(tar: tarfile.TarFile, name: str, value: object) -> None:
    data = json.dumps(value, indent=1).encode()
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o600
    tar.addfile(info, io.BytesIO(data))


class _HashingReader:
    """Reads exactly the announced number of bytes and hashes them; a file that grows meanwhile is cut off there."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self.size, self._left = file, size, size
        self.sha256 = hashlib.sha256()

    def read(self, count: int = -1) -> bytes:
        piece = self._file.read(self._left if count < 0 else min(count, self._left))
        self._left -= len(piece)
        self.sha256.update(piece)
        return piece
