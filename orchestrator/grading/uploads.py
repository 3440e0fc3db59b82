"""Files that a client sends: streamed to disk under the data directory, there only while they are used."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from orchestrator.errors import Invalid

_NAME = re.compile(r"[\w][\w .()+-]{0,199}")


class Uploads:
    """The directory for them; what a killed process left is cleared at the start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def place(self, name: str) -> Path:
        """A new empty directory's file of this name."""
        if not _NAME.fullmatch(name):
            raise Invalid(f"{name[:100]!r} cannot be the name of a file here: letters, digits, and . _ - ( ) + are fine")
        self._folder.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=self._folder)) / name

    @contextlib.asynccontextmanager
    async def receive(self, name: str, body: AsyncIterator[bytes]) -> AsyncIterator[Path]:
        """The whole body as a file of this name, until the block ends."""
        path = await asyncio.to_thread(self.place, name)
        try:
            await write(path, body)
            yield path
        finally:
            await asyncio.to_thread(shutil.rmtree, path.parent, ignore_errors=True)


async def write(path: Path, body: AsyncIterator[bytes]) -> None:
    with path.open("wb") as file:
        async for piece in body:
            if piece:
                await asyncio.to_thread(file.write, piece)
