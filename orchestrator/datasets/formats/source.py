"""A source file, read once from start to end: plain or compressed, hashed on the way, as a whole or in lines of bounded
length.

Only one line is in memory at a time. A line longer than `MAX_LINE_BYTES` is skipped and reported, never read whole.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.formats.unpacking import CHUNK, ZIP, damage_is_said, data_suffix, only_member, unpacked

if TYPE_CHECKING:
    from typing_extensions import Buffer

MAX_LINE_BYTES = 512 << 20
MAX_WHOLE_BYTES = 512 << 20
MAX_BLANK_LINES = 100_000
LOOK_UP_LINES = 1000
PARQUET = b"PAR1"
PARQUET_ENCRYPTED = b"PARE"

Progress = Callable[[int, int], None]
"""Bytes of the file read so far, and its size."""


class TooLong:
    """Stands for a line that exceeds the limit."""


class _Hashed(io.RawIOBase):
    """Hashes the data that passes through and reports progress."""

    def __init__(self, path: Path, progress: Progress | None) -> None:
        self._raw = path.open("rb", buffering=0)
        self._size = path.stat().st_size
        self._done = 0
        self._progress = progress
        self.sha = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer)
        count = cast(int, self._raw.readinto(view))
        self.sha.update(view[:count])
        self._done += count
        self.tell_progress()
        return count

    def tell_progress(self) -> None:
        """The callback may raise an exception, which ends the build."""
        if self._progress:
            self._progress(self._done, self._size)

    def close(self) -> None:
        self._raw.close()
        super().close()


@dataclass(frozen=True)
class Content:
    """What a source holds after decompression."""

    stream: io.BufferedReader[Any]
    suffix: str
    """Of the data file, which may be inside a zip: `.csv`, or empty."""
    packed: bool
    """Whether it was decompressed, so that the file on disk is not the content."""


class Source:
    """One file. `sha256` is known once it was read to the end."""

    def __init__(self, path: Path, progress: Progress | None = None, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self.path = path
        self.progress = progress
        self._max_line = max_line_bytes
        self._sha256: str | None = None
        self._raw: _Hashed | None = None

    @property
    def sha256(self) -> str:
        if self._sha256 is None:
            raise RuntimeError(f"{self.path} was not read to its end")
        return self._sha256

    @contextmanager
    def content(self) -> Iterator[Content]:
        """Opens the file and decompresses it. When the block ends normally, the rest of the file is read for the hash."""
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            raise BadSource(f"There is no file {self.path}.") from None
        if size == 0:
            raise BadSource(f"{self.path.name} is empty; nothing was built.")
        raw = self._raw = _Hashed(self.path, self.progress)
        with io.BufferedReader(raw, CHUNK) as buffered, damage_is_said(self.path.name):
            if buffered.peek(4)[:4] == ZIP:
                with only_member(self.path) as (name, member):
                    yield Content(unpacked(member, self.path.name, size), data_suffix(name), packed=True)
            else:
                stream = unpacked(buffered, self.path.name, size)
                yield Content(stream, data_suffix(self.path.name), packed=stream is not buffered)
            while buffered.read(CHUNK):
                pass
            self._sha256 = raw.sha.hexdigest()

    def lines(self) -> Iterator[tuple[int, bytes | TooLong]]:
        """Yields line numbers from 1 and lines. Blank lines are skipped."""
        with self.content() as content:
            if content.stream.peek(4)[:4] == PARQUET:
                raise BadSource(f"{self.path.name} is a Parquet file, and lines are needed here. Convert it to JSON lines.")
            yield from self.lines_of(content.stream)

    def lines_of(self, stream: io.BufferedIOBase) -> Iterator[tuple[int, bytes | TooLong]]:
        """`lines` of an opened content."""
        blank = 0
        for number, held in enumerate(self._raw_lines(stream), start=1):
            if number % LOOK_UP_LINES == 0:
                self.look_up()
            if isinstance(held[0], TooLong) or not held[0].isspace():
                yield number, held.pop()
            elif (blank := blank + 1) > MAX_BLANK_LINES:
                raise BadSource(f"{self.path.name} has more than {MAX_BLANK_LINES} blank lines; nothing was built.")

    def pieces_of(self, stream: io.BufferedIOBase) -> Iterator[bytes]:
        """An opened content in pieces."""
        while piece := stream.read(CHUNK):
            self.look_up()
            yield piece

    def whole(self) -> bytes:
        """The whole content, for formats that are a single document."""
        parts = []
        size = 0
        with self.content() as content:
            for part in self.pieces_of(content.stream):
                parts.append(part)
                size += len(part)
                if size > MAX_WHOLE_BYTES:
                    raise BadSource(f"{self.path.name} is larger than {MAX_WHOLE_BYTES >> 20} MiB; nothing was built.")
        return b"".join(parts)

    def look_up(self) -> None:
        """Called between pieces, so that a cancelled build ends soon: a small file may decompress to a very large one."""
        if self._raw is not None:
            self._raw.tell_progress()

    def _raw_lines(self, stream: io.BufferedIOBase) -> Iterator[list[bytes | TooLong]]:
        """Yields each line in its own list, from which the receiver pops it: a line may be large and is held only once."""
        while held := [stream.readline(self._max_line + 1)]:
            if not held[0]:
                return
            if len(held[0]) > self._max_line and not held[0].endswith(b"\n"):
                held.clear()
                while (rest := stream.readline(CHUNK)) and not rest.endswith(b"\n"):
                    pass
                yield [TooLong()]
            else:
                yield held  # type: ignore[misc]


def parse_object(line: bytes) -> dict[str, Any]:
    """Parses one JSON object; raises `ValueError` with a short reason."""
    try:
        text = line.decode(json.detect_encoding(line), "surrogatepass")
        del line  # it may be large: hold at most two of its three forms at a time
        value = json.loads(text)
    except RecursionError:
        raise ValueError("not JSON that can be read: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value
