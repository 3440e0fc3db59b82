"""Reads the archive of a run or batch: manifests and results, checked against their digests. It is streamed; nothing is
unpacked to disk.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from orchestrator.archives.format.layout import BATCH, BATCH_FORMAT, FORMAT, ITEMS, MANIFEST

MAX_MANIFEST = 64 << 20
MAX_LINE = 256 << 20
MAX_EXTENSION = 1 << 20
PIECE = 1 << 20
EXTENSIONS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


class BadArchive(Exception):
    """The file is not one of our archives, or is incomplete."""


class _Header(tarfile.TarInfo):
    """Rejects sparse files and large header extensions: `tarfile` would expand those and read these into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        header = super().frombuf(buf, encoding, errors)
        if header.type == tarfile.GNUTYPE_SPARSE or (header.type in EXTENSIONS and header.size > MAX_EXTENSION):
            raise tarfile.ReadError(f"an unexpected header at {header.name[:100]!r}")
        return header


Take = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class ArchiveManifests:
    """What was read: the manifest of a run, or those of all ended members of a batch."""

    batch: dict[str, Any] | None
    manifests: list[dict[str, Any]]


def read_archives(path: Path, begin: Callable[[], Take]) -> ArchiveManifests:
    """Reads an archive of a run or batch. `begin` is called before each run and returns the receiver of its results."""
    try:
        with tarfile.open(path, "r|gz", tarinfo=_Header) as tar:
            first = tar.next()
            if first is not None and first.name == BATCH:
                return _read_batch(tar, first, path.name, begin)
            manifest = _read_run(tar, first, path.name, "", begin())
            if (more := tar.next()) is not None:
                raise _unnamed(path.name, more)
            return ArchiveManifests(None, [manifest])
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise BadArchive(f"{path.name} cannot be read as a tar.gz ({error}).") from error


def _read_batch(tar: tarfile.TarFile, first: tarfile.TarInfo, name: str, begin: Callable[[], Take]) -> ArchiveManifests:
    batch = _manifest(tar, first, name, BATCH_FORMAT)
    try:
        folders = [str(member["folder"]) for member in batch["members"] if member["folder"] is not None]
    except (KeyError, TypeError) as error:
        raise BadArchive(f"{name}: {BATCH} does not name its members.") from error
    missing, manifests = set(folders), []
    while (member := tar.next()) is not None:
        folder = member.name.partition("/")[0]
        if folder not in missing:
            raise _unnamed(name, member)
        missing.remove(folder)
        manifests.append(_read_run(tar, member, name, f"{folder}/", begin()))
    if missing:
        raise BadArchive(f"{name} is incomplete: {', '.join(sorted(missing)[:5])} is missing.")
    return ArchiveManifests(batch, manifests)


def _read_run(tar: tarfile.TarFile, first: tarfile.TarInfo | None, name: str, folder: str, take: Take) -> dict[str, Any]:
    if first is None or first.name != folder + MANIFEST:
        raise BadArchive(f"{name} is not an archive of a run: it does not begin with {MANIFEST}.")
    manifest = _manifest(tar, first, name, FORMAT)
    try:
        expected = {folder + str(file["name"]): (int(file["size_bytes"]), str(file["sha256"])) for file in manifest["files"]}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadArchive(f"{name}: {MANIFEST} does not name its files.") from error
    while expected:
        if (member := tar.next()) is None:
            raise BadArchive(f"{name} is incomplete: {', '.join(sorted(expected)[:5])} is missing.")
        if not _is_file(member) or member.name not in expected:
            raise _unnamed(name, member)
        size, sha256 = expected.pop(member.name)
        digest = hashlib.sha256()
        content = _content(tar, member)
        if member.name == folder + ITEMS:
            while line := content.readline(MAX_LINE):
                digest.update(line)
                take(_json(line, ITEMS))
        else:
            while piece := content.read(PIECE):
                digest.update(piece)
        if member.size != size or digest.hexdigest() != sha256:
            raise BadArchive(f"{name}: {member.name} is not what the manifest says; the file is damaged or was changed.")
    return manifest


def _manifest(tar: tarfile.TarFile, member: tarfile.TarInfo, name: str, expected_format: str) -> dict[str, Any]:
    if not _is_file(member) or member.size > MAX_MANIFEST:
        raise BadArchive(f"{name}: {member.name} is not a file of a sensible size.")
    manifest = _json(_content(tar, member).read(), member.name)
    if manifest.get("format") != expected_format:
        raise BadArchive(f"{name} has the format {manifest.get('format')!r}; this version reads {expected_format}.")
    return manifest


def _unnamed(name: str, member: tarfile.TarInfo) -> BadArchive:
    return BadArchive(f"{name} holds {member.name!r}, which its manifest does not name.")


def _is_file(member: tarfile.TarInfo) -> bool:
    return member.isreg() and not member.issparse()


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = tar.extractfile(member)
    assert content is not None
    return content


def _json(text: bytes, where: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadArchive(f"{where} is not JSON ({error}).") from error
    if not isinstance(value, dict):
        raise BadArchive(f"{where} is not a JSON object.")
    return value
