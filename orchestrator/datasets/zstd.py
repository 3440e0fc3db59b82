"""The one door to Zstandard: the standard library's module from Python 3.14 on, its backport before."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import CompressionParameter, ZstdError
    from compression.zstd import compress as _compress
    from compression.zstd import decompress as _decompress
else:
    from backports.zstd import CompressionParameter, ZstdError
    from backports.zstd import compress as _compress
    from backports.zstd import decompress as _decompress

_OPTIONS: dict[int, int] = {CompressionParameter.compression_level: 4, CompressionParameter.checksum_flag: 1}

__all__ = ["ZstdError", "compress", "decompress"]


def compress(data: bytes) -> bytes:
    """One frame with a checksum."""
    return bytes(_compress(data, options=_OPTIONS))


def decompress(frame: bytes) -> bytes:
    """The content of one frame; `ZstdError` if it is damaged."""
    return bytes(_decompress(frame))
