"""Reads one member of a zip file within limits, whatever the file claims about its size. Inspect compresses with Zstandard,
which the standard library's zipfile knows only from Python 3.14 on."""

import struct
import sys
import zlib
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipInfo

from runner.harness.readers.item import Unreadable

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdDecompressor, ZstdError

ZIP_ZSTANDARD = 93
LOCAL_HEADER = struct.Struct("<4s5H3I2H")
MAX_PACKED_BYTES, MAX_MEMBER_BYTES = 64 << 20, 128 << 20


def member_content(file: BinaryIO, info: ZipInfo) -> bytes:
    """Raises `Unreadable` if the member is damaged, too large or compressed in another way."""
    file.seek(info.header_offset)
    head = file.read(LOCAL_HEADER.size)
    if len(head) < LOCAL_HEADER.size or not head.startswith(b"PK\x03\x04"):
        raise Unreadable(f"{info.filename[:200]} is not where the file says it is")
    name_size, extra_size = LOCAL_HEADER.unpack(head)[-2:]
    if info.compress_size > MAX_PACKED_BYTES:
        raise Unreadable(f"{info.filename[:200]} is larger than {MAX_PACKED_BYTES} bytes")
    file.seek(info.header_offset + LOCAL_HEADER.size + name_size + extra_size)
    packed = file.read(info.compress_size)
    try:
        content = _unpacked(packed, info.compress_type)
    except (zlib.error, ZstdError, EOFError) as error:
        raise Unreadable(f"{info.filename[:200]} is damaged: {error}") from None
    if len(content) > MAX_MEMBER_BYTES:
        raise Unreadable(f"{info.filename[:200]} unpacks to more than {MAX_MEMBER_BYTES} bytes")
    return content


def _unpacked(packed: bytes, how: int) -> bytes:
    """At most one byte more than is allowed."""
    if how == ZIP_STORED:
        return packed
    if how == ZIP_DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, MAX_MEMBER_BYTES + 1)
    if how == ZIP_ZSTANDARD:
        return bytes(ZstdDecompressor().decompress(packed, max_length=MAX_MEMBER_BYTES + 1))
    raise Unreadable(f"compression method {how} is not supported")
