"""When SQLite's write-ahead log reaches the disk: with a commit, or a moment after it.

A commit is safe from the end of the process as soon as it is written, and from the end of the machine once it is synced,
which takes ten times as long. One that need not wait for that is synced with the next commit that does, or by us when none
comes soon.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress

SOON_S = 0.02


class WriteAheadLog:
    """For the one thread that writes, and its connection; `close` when that ends."""

    def __init__(self, database: str) -> None:
        self._path = f"{database}-wal"
        self._file: int | None = None
        self._syncs = True  # as a connection begins
        self._due: float | None = None
        self._changes = 0

    @property
    def patience_s(self) -> float | None:
        """How long the writer may wait for work before it must `sync`; None: for ever."""
        return None if self._due is None else max(self._due - time.monotonic(), 0.0)

    def before(self, raw: sqlite3.Connection, *, synced: bool) -> None:
        """A transaction begins. It is synced if that is wanted, or if an earlier one has waited long enough for it."""
        synced = synced or self.patience_s == 0.0
        if synced is not self._syncs:
            raw.execute(f"PRAGMA synchronous={'FULL' if synced else 'NORMAL'}")
            self._syncs = synced
        self._changes = raw.total_changes

    def after(self, raw: sqlite3.Connection, *, whole: bool) -> None:
        """It is committed, `whole` or without some of its parts. Of one that stores nothing nothing is synced."""
        if not self._syncs:
            self._due = self._due or time.monotonic() + SOON_S
        elif whole and raw.total_changes != self._changes:
            self._due = None

    def sync(self) -> None:
        """Have everything that was committed on the disk. If that fails, the next synced commit will
        too, and say so."""
        if self._due is None:
            return
        with suppress(OSError):
            if self._file is None:
                self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            os.fdatasync(self._file)
        self._due = None

    def close(self) -> None:
        """The connection has ended, and with the last one the file may go too."""
        if self._file is not None:
            os.close(self._file)
        self._file, self._syncs, self._due = None, True, None
