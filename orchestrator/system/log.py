"""Logging: one JSON object per line on standard error, each with an `action` word and, where there is one, a `run_id`.

A log that cannot be written, because its disk is full or its reader has gone, never fails what is being logged.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog


class LastingStream:
    """A stream whose writes do not fail. It counts the lines that were lost, and says so when writing works again."""

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
            self._stream.flush()  # here, so that a failure is met here
        except (OSError, ValueError):
            self._lost += text.count("\n")
        return len(text)

    def flush(self) -> None:
        """`write` has done it."""


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
