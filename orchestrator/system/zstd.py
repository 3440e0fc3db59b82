"""Wraps Zstandard; a leaf. Uses the standard library's module from Python 3.14 on, its backport before."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator

if sys.version_info >= (3, 14):
    from compression.zstd import CompressionParameter, ZstdCompressor, ZstdDecompressor, ZstdError, ZstdFile
    from compression.zstd import compress as _compress
    from compression.zstd import decompress as _decompress
else:
    from backports.zstd import CompressionParameter, ZstdCompressor, ZstdDecompressor, ZstdError, ZstdFile
    from backports.zstd import compress as _compress
    from backports.zstd import decompress as _decompress

_OPTIONS: dict[int, int] = {CompressionParameter.compression_level: 4, CompressionParameter.checksum_flag: 1}
_BLOCK = 1 << 20
_kept = threading.local()

__all__ = ["ZstdDecompressor", "ZstdError", "ZstdFile", "compress", "compress_pieces", "compress_quickly", "decompress"]


def compress(data: bytes) -> bytes:
    """One frame with a checksum."""
    return bytes(_compress(data, options=_OPTIONS))


def compress_quickly(data: bytes) -> bytes:
    """One frame for a database row, without a checksum: every microsecond counts, and the database checks its pages.

    Creating a compressor costs several times as much as compressing a small row, so each thread keeps one.
    """
    compressor: ZstdCompressor = getattr(_kept, "compressor", None) or ZstdCompressor(3)
    _kept.compressor = None  # one that failed, or holds much memory after large data, is not reused
    frame = bytes(compressor.compress(data, ZstdCompressor.FLUSH_FRAME))
    if len(data) <= _BLOCK:
        _kept.compressor = compressor
    return frame


def compress_pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """One frame with a checksum, in pieces as they arrive; in a single piece if it is small."""
    waiting: list[bytes] = []
    size = 0
    compressor: ZstdCompressor | None = None
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size > _BLOCK:
            compressor = compressor or ZstdCompressor(options=_OPTIONS)
            yield bytes(compressor.compress(b"".join(waiting)))
            waiting, size = [], 0
    rest = b"".join(waiting)
    yield compress(rest) if compressor is None else bytes(compressor.compress(rest)) + bytes(compressor.flush())


def decompress(frame: bytes) -> bytes:
    """The content of one frame; raises `ZstdError` if it is damaged."""
    return bytes(_decompress(frame))
