"""Files that a runner left, as members of an archive: read as bytes, never unpacked, links never followed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from orchestrator.archives.format.layout import safe_names
from orchestrator.archives.format.tar_stream import Member, measured
from orchestrator.runs.tables import Artefact

PIECE = 256 * 1024
MAX_ARTEFACTS = 1000


class _Unreadable(Exception):
    """Why a file is left out."""


async def artefact_members(
    folder: Path, rows: Sequence[Artefact], *, max_bytes: int
) -> tuple[list[Member], list[dict[str, Any]]]:
    """The artefacts that match their records and fit, under their names in the archive; and a note on every artefact,
    included or not.
    """
    names = safe_names(row.name for row in rows)
    members, notes = [], []
    for number, row in enumerate(sorted(rows, key=lambda artefact: names[artefact.name])):
        note: dict[str, Any] = {"name": row.name, "size_bytes": row.size_bytes, "sha256": row.sha256}
        try:
            if number >= MAX_ARTEFACTS or row.size_bytes > max_bytes:
                raise _Unreadable("left out: the archive would be too large")
            file = f"artefacts/{names[row.name]}"
            member = await measured(file, _Pieces(folder, row))
            if (member.size_bytes, member.sha256) != (row.size_bytes, row.sha256):
                raise _Unreadable("left out: it is not what was recorded")
        except _Unreadable as error:
            notes.append({**note, "file": None, "note": str(error)})
            continue
        max_bytes -= row.size_bytes
        members.append(member)
        notes.append({**note, "file": file})
    return members, notes


class _Pieces:
    def __init__(self, folder: Path, row: Artefact) -> None:
        self._folder, self._row = folder, row

    async def __call__(self) -> AsyncIterator[bytes]:
        file = await asyncio.to_thread(_open, self._folder, self._row.name)
        try:
            while piece := await asyncio.to_thread(os.read, file, PIECE):
                yield piece
        finally:
            os.close(file)


def _open(folder: Path, name: str) -> int:
    """Opens a regular file in this directory; refuses links of any kind."""
    if name in ("", ".", "..") or "/" in name or "\x00" in name:
        raise _Unreadable("left out: its name leads somewhere else")
    with contextlib.ExitStack() as stack:
        try:
            folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            stack.callback(os.close, folder_fd)
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder_fd)
        except OSError as error:
            raise _Unreadable(f"left out: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise _Unreadable("left out: not a regular file")
        return file
