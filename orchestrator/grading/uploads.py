"""Uploads of clients: streamed to disk under the data directory while it has room, and deleted after use."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from orchestrator.errors import Invalid
from orchestrator.system.files import DiskRoom

CHECK_BYTES = 64 << 20
_NAME = re.compile(r"[\w][\w .()+-]{0,199}")


class Uploads:
    """The upload directory. `clear` removes at startup what a killed process left behind."""

    def __init__(self, folder: Path, room: DiskRoom) -> None:
        self._folder = folder
        self._room = room

    def clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def place(self, name: str) -> Path:
        """The path of a file of this name in a new empty directory."""
        if not _NAME.fullmatch(name):
            raise Invalid(f"{name[:100]!r} cannot be the name of a file here: letters, digits, and . _ - ( ) + are fine")
        self._folder.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=self._folder)) / name

    @contextlib.asynccontextmanager
    async def receive(self, name: str, body: AsyncIterator[bytes], size: int | None = None) -> AsyncIterator[Path]:
        """The whole body as a file of this name, which exists until the block ends."""
        path = await asyncio.to_thread(self.place, name)
        try:
            await self.write(path, body, size)
            yield path
        finally:
            await asyncio.to_thread(shutil.rmtree, path.parent, ignore_errors=True)

    async def write(self, path: Path, body: AsyncIterator[bytes], size: int | None = None) -> None:
        """Raises `NoSpace` before the first byte if the size is known, otherwise when the disk becomes too full."""
        await asyncio.to_thread(self._room.require, size or 0, "The file")
        unchecked = 0
        with self._room.full_is_said("the file"), path.open("wb") as file:
            async for piece in body:
                await asyncio.to_thread(file.write, piece)
                unchecked += len(piece)
                if unchecked >= CHECK_BYTES:
                    unchecked = 0
                    await asyncio.to_thread(self._room.require, 0, "The file")


def announced_size(headers: Mapping[str, str]) -> int | None:
    """The size of the body, if the sender declares it."""
    said = headers.get("content-length", "")
    return int(said) if said.isascii() and said.isdigit() else None
