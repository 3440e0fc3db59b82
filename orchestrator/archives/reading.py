"""Reads an archive of a run back: manifest and results, checked against their digests. A stream; nothing is unpacked."""

from __future__ import annotations

import hashlib
import json
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from orchestrator.archives.layout import FORMAT, ITEMS, MANIFEST

MAX_MANIFEST = 64 << 20
MAX_LINE = 256 << 20
PIECE = 1 << 20


class BadArchive(Exception):
    """The file is not an archive of ours, or not whole."""


def read_archive(path: Path, take: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """The manifest; `take` is given each result as it comes. What it was given counts only if this returns."""
    try:
        with tarfile.open(path, "r|gz") as tar:
            return _read(tar, path.name, take)
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise BadArchive(f"{path.name} cannot be read as a tar.gz ({error}).") from error


def _read(tar: tarfile.TarFile, name: str, take: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    first = tar.next()
    if first is not None and first.name == "batch.json":
        raise BadArchive(f"{name} holds a whole batch; give the archive of one of its runs.")
    if first is None or first.name != MANIFEST or not first.isreg() or first.size > MAX_MANIFEST:
        raise BadArchive(f"{name} is not an archive of a run: it does not begin with {MANIFEST}.")
    manifest = _json(_content(tar, first).read(), MANIFEST)
    if manifest.get("format") != FORMAT:
        raise BadArchive(f"{name} has the format {manifest.get('format')!r}; this version reads {FORMAT}.")
    try:
        expected = {str(each["name"]): (int(each["size_bytes"]), str(each["sha256"])) for each in manifest["files"]}
    except (KeyError, TypeError, ValueError) as error:
        raise BadArchive(f"{name}: {MANIFEST} does not name its files.") from error
    while (member := tar.next()) is not None:
        if not member.isreg() or member.name not in expected:
            raise BadArchive(f"{name} holds {member.name!r}, which its manifest does not name.")
        size, sha256 = expected.pop(member.name)
        digest = hashlib.sha256()
        content = _content(tar, member)
        if member.name == ITEMS:
            while line := content.readline(MAX_LINE):
                digest.update(line)
                take(_json(line, ITEMS))
        else:
            while piece := content.read(PIECE):
                digest.update(piece)
        if member.size != size or digest.hexdigest() != sha256:
            raise BadArchive(f"{name}: {member.name} is not what the manifest says; the file is damaged or was changed.")
    if expected:
        raise BadArchive(f"{name} lacks {', '.join(sorted(expected)[:5])}; it is not whole.")
    return manifest


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
        raise BadArchive(f"{where} is not what it should be.")
    return value
