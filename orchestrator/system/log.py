"""Logging: one JSON object per line on standard error, each with an `action` and, if there is one, a `run_id`.

A failure to write the log (disk full, reader gone) never fails the work being logged.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from pathlib import Path
from typing import TextIO

import structlog


class LastingStream:
    """A stream whose writes do not fail. It counts lost lines and reports them when writing works again."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lost = 0

    def write(self, text: str) -> int:
        try:
            if self._lost:
                self._stream.write(f'{{"action": "log_lost", "lines": {self._lost}}}\n')
                self._stream.flush()
                self._lost = 0
            self._stream.write(text)
            self._stream.flush()  # here, so that a failure is handled here
        except (OSError, ValueError):
            self._lost += text.count("\n")
        return len(text)

    def flush(self) -> None:
        """`write` has already flushed."""


def configure(level: str) -> None:
    stream = LastingStream(sys.stderr)
    number = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(stream),  # type: ignore[arg-type]
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(level=logging.WARNING, stream=stream, format="%(levelname)s %(name)s %(message)s")


LOG_FILE = "benchyard.log"
"""The file to which `benchyard up` redirects the service's output."""
LOOK_S = 5.0
STREAMS = (1, 2)


class LogRotation:
    """Rotates the file that standard output and error may be redirected to. Keeps `keep` older files; `path.1` is the
    newest."""

    def __init__(self, path: Path, *, max_bytes: int, keep: int, streams: tuple[int, ...] = STREAMS) -> None:
        self._path, self._max_bytes, self._keep, self._streams = path, max_bytes, keep, streams
        self._over = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, name="log-rotation", daemon=True).start()

    def close(self) -> None:
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(LOOK_S):
            with contextlib.suppress(OSError):  # for example a full disk; the next round tries again
                self.rotate()

    def rotate(self) -> bool:
        """Start a new file if the current one is too large; returns whether it did."""
        streams = [stream for stream in self._streams if self._is_ours(stream)]
        if not streams or self._path.stat().st_size < self._max_bytes:
            return False
        for number in range(self._keep, 0, -1):
            older = self._numbered(number - 1)
            if older.exists():
                older.replace(self._numbered(number))
        self._path.unlink(missing_ok=True)  # only with `keep` 0; otherwise it was renamed
        for number in range(self._keep + 1, self._keep + 100):
            if not self._numbered(number).exists():
                break
            self._numbered(number).unlink()
        fresh = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            for stream in streams:
                os.dup2(fresh, stream)
        finally:
            os.close(fresh)
        return True

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path

    def _is_ours(self, stream: int) -> bool:
        try:
            open_file, file = os.fstat(stream), self._path.stat()
        except OSError:
            return False
        return (open_file.st_dev, open_file.st_ino) == (file.st_dev, file.st_ino)


class FollowedLog(LogRotation):
    """For a process that was started with the streams of the one that rotates the file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, max_bytes=0, keep=0)
        self._inherited = [stream for stream in self._streams if self._is_ours(stream)]

    def rotate(self) -> bool:
        """Go on in the new file if there is one."""
        left = [stream for stream in self._inherited if self._path.exists() and not self._is_ours(stream)]
        for stream in left:
            fresh = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            os.dup2(fresh, stream)
            os.close(fresh)
        return bool(left)
