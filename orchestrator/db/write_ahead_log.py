"""Decides when SQLite's write-ahead log is synced to disk: with a commit, or a moment after it.

A commit survives a crash of the process once it is written, and a crash of the machine once it is synced, which takes ten
times as long. A commit that need not wait for that is synced with the next one that does, or by this class if none comes
soon.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress

SOON_S = 0.02


class WriteAheadLog:
    """Used by the one writer thread with its connection; call `close` when the connection ends."""

    def __init__(self, database: str) -> None:
        self._path = f"{database}-wal"
        self._file: int | None = None
        self._syncs = True  # the default of a new connection
        self._due: float | None = None
        self._changes = 0

    @property
    def patience_s(self) -> float | None:
        """How long the writer may wait for work before it must `sync`; None means no limit."""
        return None if self._due is None else max(self._due - time.monotonic(), 0.0)

    def before(self, raw: sqlite3.Connection, *, synced: bool) -> None:
        """Called before a transaction. It is synced if requested, or if an earlier one has waited long enough."""
        synced = synced or self.patience_s == 0.0
        if synced is not self._syncs:
            raw.execute(f"PRAGMA synchronous={'FULL' if synced else 'NORMAL'}")
            self._syncs = synced
        self._changes = raw.total_changes

    def after(self, raw: sqlite3.Connection, *, whole: bool) -> None:
        """Called after the commit; `whole` if no part was rolled back. A transaction that stores nothing syncs nothing."""
        if not self._syncs:
            self._due = self._due or time.monotonic() + SOON_S
        elif whole and raw.total_changes != self._changes:
            self._due = None

    def sync(self) -> None:
        """Sync everything committed to disk. If that fails, the next synced commit fails too and reports it."""
        if self._due is None:
            return
        with suppress(OSError):
            if self._file is None:
                self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            os.fdatasync(self._file)
        self._due = None

    def close(self) -> None:
        """Called when the connection has ended; after the last one, SQLite may delete the file."""
        if self._file is not None:
            os.close(self._file)
        self._file, self._syncs, self._due = None, True, None
