"""Returns the space of deleted rows to the disk while the database is in use.

SQLite does that page by page, in short transactions, if the database was created with `auto_vacuum`; an older one needs a
single full VACUUM first, with the service stopped. PostgreSQL's VACUUM makes space reusable for new rows, and returns only
the space at the end of its files to the disk.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

STEP_PAGES = 500
INCREMENTAL = 2


class VacuumFailed(Exception):
    """The message says why, and what to do."""


@dataclass(frozen=True)
class VacuumResult:
    before_bytes: int
    after_bytes: int

    @property
    def freed_bytes(self) -> int:
        return max(self.before_bytes - self.after_bytes, 0)


def vacuum(url: str, *, in_use: bool, step: Callable[[int], None] = lambda _left: None) -> VacuumResult:
    """`in_use`: others may read and write meanwhile. `step` is called with the number of free pages left."""
    address = make_url(url)
    try:
        if address.get_backend_name() == "sqlite":
            return _vacuum_sqlite(Path(address.database or ""), in_use=in_use, step=step)
        return _vacuum_postgres(url)
    except (sqlite3.Error, DBAPIError) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        raise VacuumFailed(f"the database cannot be used now ({cause}); try again later") from error


def _vacuum_sqlite(path: Path, *, in_use: bool, step: Callable[[int], None]) -> VacuumResult:
    if not path.exists():
        raise VacuumFailed(f"there is no database at {path}")
    before = _size(path)
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as connection:
        if _number(connection, "auto_vacuum") != INCREMENTAL:
            if in_use:
                raise VacuumFailed(
                    "this database was made by an older version and cannot give space back while it is in use: stop the "
                    "service, run `benchyard vacuum` once, and start it again"
                )
            connection.execute(f"PRAGMA auto_vacuum={INCREMENTAL}")
            connection.execute("VACUUM")
        while (free_pages := _number(connection, "freelist_count")) > 0:
            step(free_pages)
            # The pragma frees one page per fetched row.
            connection.execute(f"PRAGMA incremental_vacuum({STEP_PAGES})").fetchall()
            if _number(connection, "freelist_count") >= free_pages:
                break
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return VacuumResult(before, _size(path))


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _size(path: Path) -> int:
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _vacuum_postgres(url: str) -> VacuumResult:
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    size = text("SELECT pg_database_size(current_database())")
    with engine.connect() as connection:
        before = int(connection.execute(size).scalar() or 0)
        connection.execute(text("VACUUM (ANALYZE)"))
        return VacuumResult(before, int(connection.execute(size).scalar() or 0))
