"""Reads one member of a zip file within limits, whatever the file claims about its size. Inspect compresses with Zstandard,
which the standard library's zipfile knows only from Python 3.14 on."""

import struct
import sys
import zlib
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipInfo

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdDecompressor, ZstdError

ZIP = b"PK\x03\x04"
ZIP_ZSTANDARD = 93
LOCAL_HEADER = struct.Struct("<4s5H3I2H")
MAX_PACKED_BYTES, MAX_MEMBER_BYTES = 64 << 20, 128 << 20


class BadMember(ValueError):
    """The member is damaged, too large or compressed in another way; the text says which."""


def member_content(file: BinaryIO, info: ZipInfo) -> bytes:
    name = info.filename[:200]
    file.seek(info.header_offset)
    head = file.read(LOCAL_HEADER.size)
    if len(head) < LOCAL_HEADER.size or not head.startswith(ZIP):
        raise BadMember(f"{name} is not where the file says it is; it is damaged")
    if info.compress_size > MAX_PACKED_BYTES:
        raise BadMember(f"{name} has more than {MAX_PACKED_BYTES >> 20} MiB")
    name_size, extra_size = LOCAL_HEADER.unpack(head)[-2:]
    file.seek(info.header_offset + LOCAL_HEADER.size + name_size + extra_size)
    packed = file.read(info.compress_size)
    try:
        content = _unpacked(name, packed, info.compress_type)
    except (zlib.error, ZstdError, EOFError) as error:
        raise BadMember(f"{name} is cut short or damaged ({error})") from None
    if len(content) > MAX_MEMBER_BYTES:
        raise BadMember(f"{name} unpacks to more than {MAX_MEMBER_BYTES >> 20} MiB")
    if zlib.crc32(content) != info.CRC:
        raise BadMember(f"{name} is cut short or damaged: its checksum does not match")
    return content


def _unpacked(name: str, packed: bytes, how: int) -> bytes:
    if how == ZIP_STORED:
        return packed
    if how == ZIP_DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, MAX_MEMBER_BYTES + 1)
    if how != ZIP_ZSTANDARD:
        raise BadMember(f"{name} is compressed by method {how}; only deflate and Zstandard are read")
    content = b""
    while packed and len(content) <= MAX_MEMBER_BYTES:  # Inspect splits what is large into several frames
        frame = ZstdDecompressor()
        content += bytes(frame.decompress(packed, max_length=MAX_MEMBER_BYTES + 1 - len(content)))
        if not frame.eof and len(content) <= MAX_MEMBER_BYTES:
            raise EOFError("a frame is incomplete")
        packed = frame.unused_data if frame.eof else b""
    return content
