"""Compressed files as plain streams: gzip, Zstandard, and the one data file of a zip.

Everything is decompressed in pieces, to at most a fixed multiple of the compressed size.
"""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from orchestrator.datasets.errors import BadSource
from orchestrator.system.zstd import ZstdError, ZstdFile

if TYPE_CHECKING:
    from typing_extensions import Buffer

MAX_RATIO = 200
"""Problem files decompress to about ten times their size; decompression bombs to a thousand times."""
ROOM_BYTES = 64 << 20
CHUNK = 1 << 20
GZIP, ZSTD, ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
COMPRESSED_SUFFIXES = (".gz", ".zst", ".zip")
DATA_SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")


class Limited(io.RawIOBase):
    """A decompressed stream that may have at most a fixed multiple of the compressed size."""

    def __init__(self, stream: Any, name: str, packed_bytes: int) -> None:
        self._stream = stream
        self._name = name
        self._left = allowance(packed_bytes)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        count = cast(int, self._stream.readinto(buffer))
        self._left -= count
        if self._left < 0:
            raise too_large(self._name)
        return count


def allowance(packed_bytes: int) -> int:
    """How many bytes a file of this size may decompress to."""
    return ROOM_BYTES + MAX_RATIO * packed_bytes


def too_large(name: str) -> BadSource:
    return BadSource(f"{name} unpacks to more than {MAX_RATIO} times its size; nothing was built.")


def unpacked(stream: io.BufferedReader[Any], name: str, packed_bytes: int) -> io.BufferedReader[Any]:
    """The content of a gzip or Zstandard stream, or the stream itself if it is neither."""
    magic = stream.peek(4)[:4]
    if magic[:2] == GZIP:
        return io.BufferedReader(Limited(gzip.GzipFile(fileobj=stream), name, packed_bytes), CHUNK)
    if magic == ZSTD:
        return io.BufferedReader(Limited(ZstdFile(cast(BinaryIO, stream)), name, packed_bytes), CHUNK)
    return stream


@contextmanager
def only_member(path: Path) -> Iterator[tuple[str, io.BufferedReader[Any]]]:
    """The name and content of the only data file in a zip."""
    with zipfile.ZipFile(path) as archive:
        inside = [info for info in archive.infolist() if data_suffix(info.filename) in DATA_SUFFIXES]
        if len(inside) != 1:
            kinds = ", ".join(DATA_SUFFIXES)
            raise BadSource(
                f"{path.name} has {len(inside)} data files ({kinds}) and must have exactly one; nothing was built."
            )
        with archive.open(inside[0]) as member:
            yield inside[0].filename, io.BufferedReader(Limited(member, path.name, path.stat().st_size), CHUNK)


@contextmanager
def damage_is_said(name: str) -> Iterator[None]:
    """Turns the errors of the decompressors into `BadSource`."""
    try:
        yield
    except EOFError as error:
        raise BadSource(f"{name} is cut short (its compressed stream has no end); fetch it again.") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise BadSource(f"{name} is damaged (gzip: {error}); fetch it again.") from error
    except ZstdError as error:
        raise BadSource(f"{name} is damaged (zstd: {error}); fetch it again.") from error
    except zipfile.BadZipFile as error:
        raise BadSource(f"{name} is damaged (zip: {error}); fetch it again.") from error
    except (NotImplementedError, RuntimeError) as error:  # raised by zipfile for encrypted or exotic members
        raise BadSource(f"{name} cannot be read ({error}); unpack it first.") from error


def data_suffix(name: str) -> str:
    """The suffix that says what the content is: `.csv` for `x.csv.gz`."""
    suffixes = [suffix.lower() for suffix in PurePath(name).suffixes]
    while suffixes and suffixes[-1] in COMPRESSED_SUFFIXES:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""
