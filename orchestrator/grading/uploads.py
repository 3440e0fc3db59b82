"""Uploads of clients: streamed to disk under the data directory while it has room, and deleted after use."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from orchestrator.errors import Invalid
from orchestrator.system.files import DiskRoom

CHECK_BYTES = 64 << 20
KEPT = "kept-"
KEPT_S = 3600.0
_HANDLE = re.compile(rf"{KEPT}[\w-]{{1,40}}")
_NAME = re.compile(r"[\w][\w .()+-]{0,199}")


class Uploads:
    """The upload directory. `clear` removes at startup what a killed process left behind."""

    def __init__(self, folder: Path, room: DiskRoom) -> None:
        self._folder = folder
        self._room = room

    def clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def place(self, name: str, prefix: str = "") -> Path:
        """The path of a file of this name in a new empty directory."""
        if not _NAME.fullmatch(name):
            raise Invalid(f"{name[:100]!r} cannot be used as a file name: use letters, digits, and . _ - ( ) +")
        self._folder.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=self._folder, prefix=prefix)) / name

    async def keep(self, name: str, body: AsyncIterator[bytes], size: int | None = None) -> str:
        """Stores a file for a later request and returns its handle. Files that nobody used for an hour are removed."""
        await asyncio.to_thread(self._forget_old)
        path = await asyncio.to_thread(self.place, name, KEPT)
        try:
            await self.write(path, body, size)
        except BaseException:
            self.discard(path)
            raise
        return path.parent.name

    def kept(self, handle: str) -> Path:
        """The file with this handle. Raises `Invalid` if there is none, or no longer."""
        folder = self._folder / handle
        files = list(folder.iterdir()) if _HANDLE.fullmatch(handle) and folder.is_dir() else []
        if len(files) != 1:
            raise Invalid(f"there is no uploaded file {handle[:100]!r}; files are kept for an hour: upload it again")
        return files[0]

    def discard(self, path: Path) -> None:
        shutil.rmtree(path.parent, ignore_errors=True)

    def _forget_old(self) -> None:
        if not self._folder.is_dir():
            return
        for folder in self._folder.glob(f"{KEPT}*"):
            with contextlib.suppress(OSError):
                if time.time() - folder.stat().st_mtime > KEPT_S:
                    shutil.rmtree(folder, ignore_errors=True)

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
    length = headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else None
