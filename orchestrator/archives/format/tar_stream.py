"""A tar.gz as a stream: the same members give the same bytes, in bounded memory whatever their size.

A tar header holds the size of its content, so every member is read twice: once to measure, once to write. Times, owners and
modes are fixed. Nothing is ever extracted here.
"""

from __future__ import annotations

import asyncio
import hashlib
import tarfile
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from dataclasses import dataclass

LEVEL = 3
"""Compresses to a third of the size, in a third of the time of level 6."""
BLOCK = tarfile.BLOCKSIZE
END = bytes(2 * BLOCK)

Pieces = Callable[[], AsyncIterator[bytes]]
"""Returns the content from the beginning; it must be the same on every call."""


class ContentChanged(Exception):
    """A member changed between the two reads; try again."""


@dataclass(frozen=True)
class Member:
    name: str
    pieces: Pieces
    size_bytes: int
    sha256: str


async def measured(name: str, pieces: Pieces) -> Member:
    digest, size = hashlib.sha256(), 0
    async for piece in pieces():
        size += len(piece)
        await asyncio.to_thread(digest.update, piece)
    return Member(name, pieces, size, digest.hexdigest())


def whole(name: str, content: bytes) -> Member:
    """A member that fits into memory."""

    async def pieces() -> AsyncIterator[bytes]:
        yield content

    return Member(name, pieces, len(content), hashlib.sha256(content).hexdigest())


async def tar_of(members: Iterable[Member], prefix: str = "") -> AsyncIterator[bytes]:
    """Yields headers and contents without the end mark, so that several can be concatenated."""
    for member in members:
        yield _header(prefix + member.name, member.size_bytes)
        size, digest = 0, hashlib.sha256()
        async for piece in member.pieces():
            size += len(piece)
            await asyncio.to_thread(digest.update, piece)
            yield piece
        if size != member.size_bytes or digest.hexdigest() != member.sha256:
            raise ContentChanged(f"{member.name} changed while it was archived")
        yield bytes(-size % BLOCK)


async def gzipped(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Adds the end mark of the tar; the gzip header has neither time nor name."""
    compressor = zlib.compressobj(LEVEL, wbits=31)
    async for piece in pieces:
        if packed := await asyncio.to_thread(compressor.compress, piece):
            yield packed
    yield await asyncio.to_thread(lambda: compressor.compress(END) + compressor.flush())


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, 0o644, 0
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
