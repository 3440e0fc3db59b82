"""Writes a zip file piece by piece, to a receiver that cannot seek.

Members are compressed by deflate. The directory at the end is all that is kept in memory, about 90 bytes per member. More
than 65,535 members, and files beyond 4 GiB, need the 64-bit records of the format (Zip64), which are written only then.
"""

from __future__ import annotations

import struct
import zlib
from datetime import datetime

LEVEL = 6
DEFLATED = 8
PLAIN, ZIP64 = 20, 45
"""The version of the format that a reader needs."""
FLAGS = 1 << 3 | 1 << 11
"""Sizes follow the content; names are UTF-8."""
FULL_16, FULL_32 = 0xFFFF, 0xFFFFFFFF
"""In place of a number that stands in a 64-bit record."""
_HEAD = struct.Struct("<4s5H3I2H")
_SIZES = struct.Struct("<4s3I")
_ENTRY = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END_64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR = struct.Struct("<4sIQI")


class ZipStream:
    """A zip file in the making; what a method returns is for the receiver. A member may have up to 4 GiB.

    Members follow one another: `begin`, any number of `write`, `end`; or `member` for a small one. `now` is the time that
    they bear; `offset` is the number of bytes that the receiver already has.
    """

    def __init__(self, now: datetime, offset: int = 0) -> None:
        day = (max(now.year, 1980) - 1980) << 9 | now.month << 5 | now.day
        self._stamp = (now.hour << 11 | now.minute << 5 | now.second // 2, day)
        self._directory = bytearray()
        self._count = 0
        self._offset = self._start = offset
        self._name = b""
        self._crc = self._packed = self._size = 0
        self._compressor = _compressor()

    def member(self, name: str, content: bytes) -> bytes:
        return self.begin(name) + self.write(content) + self.end()

    def begin(self, name: str) -> bytes:
        self._start, self._name, self._compressor = self._offset, name.encode(), _compressor()
        self._crc = self._packed = self._size = 0
        head = _HEAD.pack(b"PK\x03\x04", PLAIN, FLAGS, DEFLATED, *self._stamp, 0, 0, 0, len(self._name), 0)
        return self._sent(head + self._name)

    def write(self, content: bytes) -> bytes:
        self._crc = zlib.crc32(content, self._crc)
        self._size += len(content)
        return self._pack(self._compressor.compress(content))

    def end(self) -> bytes:
        rest = self._pack(self._compressor.flush())
        facts = self._crc, self._packed, self._size
        far = self._start >= FULL_32
        extra = struct.pack("<2HQ", 1, 8, self._start) if far else b""
        versions = (ZIP64, ZIP64) if far else (PLAIN, PLAIN)
        lengths = len(self._name), len(extra), 0
        where = 0, 0, 0, min(self._start, FULL_32)
        self._directory += _ENTRY.pack(b"PK\x01\x02", *versions, FLAGS, DEFLATED, *self._stamp, *facts, *lengths, *where)
        self._directory += self._name + extra
        self._count += 1
        return rest + self._sent(_SIZES.pack(b"PK\x07\x08", *facts))

    def close(self) -> bytes:
        """The directory, which ends the file."""
        size, start, count = len(self._directory), self._offset, self._count
        tail = b""
        if count >= FULL_16 or start + size >= FULL_32:
            numbers = count, count, size, start
            tail += _END_64.pack(b"PK\x06\x06", _END_64.size - 12, ZIP64, ZIP64, 0, 0, *numbers)
            tail += _LOCATOR.pack(b"PK\x06\x07", 0, start + size, 1)
        short = min(count, FULL_16), min(count, FULL_16), min(size, FULL_32), min(start, FULL_32)
        return bytes(self._directory) + tail + _END.pack(b"PK\x05\x06", 0, 0, *short, 0)

    def _pack(self, piece: bytes) -> bytes:
        self._packed += len(piece)
        return self._sent(piece)

    def _sent(self, piece: bytes) -> bytes:
        self._offset += len(piece)
        return piece


def _compressor() -> zlib._Compress:
    return zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
