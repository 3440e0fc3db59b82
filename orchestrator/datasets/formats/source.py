"""A source file, read once from start to end: plain or gzip, hashed on the way, as a whole or in lines of bounded length.

Only one line is in memory at a time. A line longer than `MAX_LINE_BYTES` is skipped and reported, never read whole.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from orchestrator.datasets.errors import BadSource

if TYPE_CHECKING:
    from typing_extensions import Buffer

MAX_LINE_BYTES = 512 << 20
MAX_WHOLE_BYTES = 512 << 20
MAX_RATIO = 200
"""Problem files decompress to about ten times their size; decompression bombs to a thousand times."""
ROOM_BYTES = 64 << 20
MAX_BLANK_LINES = 100_000
LOOK_UP_LINES = 1000
_CHUNK = 1 << 20
PARQUET = b"PAR1"
CONVERT = (
    "Make JSON lines of it first: duckdb -c \"COPY (FROM 'x.parquet') TO 'x.jsonl'\", or with pandas and pyarrow: "
    "python -c \"import pandas; pandas.read_parquet('x.parquet').to_json('x.jsonl', orient='records', lines=True)\"."
)

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


class _Unpacked(io.RawIOBase):
    """A gzip stream that may decompress to at most a fixed multiple of its size."""

    def __init__(self, packed: io.BufferedReader[Any], name: str, packed_bytes: int) -> None:
        self._stream = gzip.GzipFile(fileobj=packed)
        self._name = name
        self._left = ROOM_BYTES + MAX_RATIO * packed_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        count = self._stream.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise BadSource(f"{self._name} unpacks to more than {MAX_RATIO} times its size; nothing was built.")
        return count


class Source:
    """One file. `sha256` is known once it was read to the end."""

    def __init__(self, path: Path, progress: Progress | None = None, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self.path = path
        self._progress = progress
        self._max_line = max_line_bytes
        self._sha256: str | None = None
        self._raw: _Hashed | None = None

    @property
    def sha256(self) -> str:
        if self._sha256 is None:
            raise RuntimeError(f"{self.path} was not read to its end")
        return self._sha256

    def lines(self) -> Iterator[tuple[int, bytes | TooLong]]:
        """Yields line numbers from 1 and lines. Blank lines are skipped."""
        blank = 0
        for number, held in enumerate(self._guarded(self._raw_lines), start=1):
            if number % LOOK_UP_LINES == 0:
                self._look_up()
            if isinstance(held[0], TooLong) or not held[0].isspace():
                yield number, held.pop()
            elif (blank := blank + 1) > MAX_BLANK_LINES:
                raise BadSource(f"{self.path.name} has more than {MAX_BLANK_LINES} blank lines; nothing was built.")

    def whole(self) -> bytes:
        """The whole content, for formats that are a single document."""
        parts = []
        size = 0
        for part in self._guarded(lambda stream: iter(lambda: stream.read(_CHUNK), b"")):
            self._look_up()
            parts.append(part)
            size += len(part)
            if size > MAX_WHOLE_BYTES:
                raise BadSource(f"{self.path.name} is larger than {MAX_WHOLE_BYTES >> 20} MiB; nothing was built.")
        return b"".join(parts)

    def _look_up(self) -> None:
        """Called between pieces, so that a cancelled build ends soon: a small file may decompress to a very large one."""
        if self._raw is not None:
            self._raw.tell_progress()

    def _guarded(self, read: Callable[[io.BufferedIOBase], Iterator[Any]]) -> Iterator[Any]:
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            raise BadSource(f"There is no file {self.path}.") from None
        if size == 0:
            raise BadSource(f"{self.path.name} is empty; nothing was built.")
        raw = self._raw = _Hashed(self.path, self._progress)
        buffered = io.BufferedReader(raw, _CHUNK)
        with buffered:
            if buffered.peek(4)[:4] == PARQUET:
                raise BadSource(f"{self.path.name} is a Parquet file, which is not read here. {CONVERT}")
            stream = cast(
                io.BufferedIOBase,
                io.BufferedReader(_Unpacked(buffered, self.path.name, size), _CHUNK)
                if buffered.peek(2)[:2] == b"\x1f\x8b"
                else buffered,
            )
            try:
                yield from read(stream)
            except EOFError as error:
                raise BadSource(f"{self.path.name} is cut short (its gzip stream has no end); fetch it again.") from error
            except (gzip.BadGzipFile, zlib.error) as error:
                raise BadSource(f"{self.path.name} is damaged (gzip: {error}); fetch it again.") from error
            self._sha256 = raw.sha.hexdigest()

    def _raw_lines(self, stream: io.BufferedIOBase) -> Iterator[list[bytes | TooLong]]:
        """Yields each line in its own list, from which the receiver pops it: a line may be large and is held only once."""
        while held := [stream.readline(self._max_line + 1)]:
            if not held[0]:
                return
            if len(held[0]) > self._max_line and not held[0].endswith(b"\n"):
                held.clear()
                while (rest := stream.readline(_CHUNK)) and not rest.endswith(b"\n"):
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
