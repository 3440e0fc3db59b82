"""Compressed answers: not asked for, and sent all the same by some proxies. Piece by piece, under a cap."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol

from orchestrator.system.zstd import ZstdDecompressor, ZstdError

PIECE_BYTES = 64 << 10
_PLAIN = frozenset({"", "identity", "none"})


class UnknownCoding(Exception):
    """It is compressed in a way that is not known here."""


class BadCoding(Exception):
    """What came is not compressed as it says."""


class Decoder(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]:
        """What `data` stands for, in pieces of bounded size. Raises `BadCoding`."""


def decoder_of(coding: str) -> Decoder | None:
    """What undoes a `content-encoding`; None for nothing to undo. Raises `UnknownCoding`."""
    names = {part.strip().lower() for part in coding.split(",")} - _PLAIN
    if not names:
        return None
    if names <= {"gzip", "x-gzip"}:
        return _Zlib(zlib.MAX_WBITS | 16)
    if names == {"deflate"}:
        return _Zlib(zlib.MAX_WBITS)
    if names == {"zstd"}:
        return _Zstd()
    raise UnknownCoding(f"it is compressed with {coding[:40]}, which was not asked for")


class _Zlib:
    def __init__(self, bits: int) -> None:
        self._inner = zlib.decompressobj(bits)

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data and not self._inner.eof:
            try:
                piece = self._inner.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise BadCoding("it is not compressed as it says") from error
            data = self._inner.unconsumed_tail
            if piece:
                yield piece


class _Zstd:
    def __init__(self) -> None:
        self._inner = ZstdDecompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        while not self._inner.eof and (data or not self._inner.needs_input):
            try:
                piece = self._inner.decompress(data, PIECE_BYTES)
            except ZstdError as error:
                raise BadCoding("it is not compressed as it says") from error
            data = b""
            if piece:
                yield piece
