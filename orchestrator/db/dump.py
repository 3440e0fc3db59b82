"""Dumps the whole database into files, in one consistent snapshot while it is in use, and loads such files.

SQLite is copied with its own backup interface. PostgreSQL's tables are copied with the server's COPY in one snapshot, so
pg_dump is not needed. A dump is loaded into a database without tables, which is first migrated to the dump's schema.
"""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from alembic import command
from sqlalchemy import Connection, create_engine, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from orchestrator.db.migrate import alembic_config
from orchestrator.db.table_modules import whole_schema
from orchestrator.system.files import private_file

SQLITE_FILE = "benchyard.db"
TABLES_FILE = "tables.json"
PIECE = 1 << 20


class DumpFailed(Exception):
    """The dump could not be made or loaded; the message says why."""


def dialect_of(url: str) -> str:
    return make_url(url).get_backend_name()


def dump(url: str, folder: Path) -> None:
    """Write the database into an empty folder."""
    try:
        if dialect_of(url) == "sqlite":
            _dump_sqlite(Path(make_url(url).database or ""), folder / SQLITE_FILE)
        else:
            _dump_postgres(url, folder)
    except (DBAPIError, sqlite3.Error) as error:
        raise DumpFailed(f"the database cannot be read: {_first_line(error)}") from error


def _dump_sqlite(source: Path, target: Path) -> None:
    if not source.exists():
        raise DumpFailed(f"there is no database at {source}; has the service run here?")
    private_file(target)
    # All pages in one step: in write-ahead mode that is one snapshot, and no writer waits for it.
    with closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as before, closing(sqlite3.connect(target)) as after:
        before.execute("PRAGMA busy_timeout=10000")
        before.backup(after, pages=-1)
        after.execute("PRAGMA journal_mode=DELETE")  # a single, self-contained file
        check_sqlite(after)


def check_sqlite(connection: sqlite3.Connection) -> None:
    """Raises `DumpFailed` if the file is damaged."""
    lines = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)")]
    if lines != ["ok"]:
        raise DumpFailed(f"the database is damaged: {'; '.join(lines)[:300]}")


def _dump_postgres(url: str, folder: Path) -> None:
    engine = create_engine(url, poolclass=NullPool, isolation_level="REPEATABLE READ")
    with engine.connect() as connection:
        connection.execute(text("SET TRANSACTION READ ONLY"))
        tables = set(inspect(connection).get_table_names())
        written = []
        for table in whole_schema().sorted_tables:
            if table.name not in tables:
                continue
            columns = [column["name"] for column in inspect(connection).get_columns(table.name)]
            statement = f"COPY {_named(table.name, columns)} TO STDOUT"
            with (
                (folder / f"{table.name}.copy").open("wb") as file,
                _cursor(connection) as cursor,
                cursor.copy(statement) as rows,
            ):
                for piece in rows:
                    file.write(piece)
            written.append({"table": table.name, "columns": columns})
    (folder / TABLES_FILE).write_text(json.dumps(written))


def is_empty(url: str) -> bool:
    """Whether the database has no tables; a missing file has none."""
    path = make_url(url).database or ""
    if dialect_of(url) == "sqlite" and not Path(path).exists():
        return True
    with create_engine(url, poolclass=NullPool).connect() as connection:
        return not inspect(connection).get_table_names()


def load(url: str, folder: Path, revision: str, *, replace: bool = False) -> None:
    """Load a dump into the database. With `replace`, existing tables are dropped in the same transaction."""
    try:
        if dialect_of(url) == "sqlite":
            _load_sqlite(Path(make_url(url).database or ""), folder / SQLITE_FILE)
        else:
            _load_postgres(url, folder, revision, replace=replace)
    except (DBAPIError, sqlite3.Error) as error:
        raise DumpFailed(f"the database cannot be written: {_first_line(error)}") from error


def _load_sqlite(target: Path, source: Path) -> None:
    with closing(sqlite3.connect(source)) as connection:
        check_sqlite(connection)
    for tail in ("-wal", "-shm"):
        target.with_name(target.name + tail).unlink(missing_ok=True)
    source.replace(target)
    private_file(target)


def _load_postgres(url: str, folder: Path, revision: str, *, replace: bool) -> None:
    engine = create_engine(url, poolclass=NullPool)
    if replace:
        with engine.begin() as connection:
            _drop_ours(connection)
    command.upgrade(alembic_config(url), revision)
    with engine.begin() as connection:
        written = _checked(json.loads((folder / TABLES_FILE).read_text()))
        for entry in reversed(written):
            # Migrations insert some rows. The audit log refuses to be emptied, but it is empty.
            if connection.execute(text(f'SELECT 1 FROM "{entry["table"]}" LIMIT 1')).first():  # noqa: S608 -- it was checked
                connection.execute(text(f'TRUNCATE TABLE "{entry["table"]}" CASCADE'))
        for entry in written:
            name, columns = str(entry["table"]), [str(column) for column in entry["columns"]]
            statement = f"COPY {_named(name, columns)} FROM STDIN"
            with (
                (folder / f"{name}.copy").open("rb") as file,
                _cursor(connection) as cursor,
                cursor.copy(statement) as rows,
            ):
                while piece := file.read(PIECE):
                    rows.write(piece)
            _set_sequences(connection, name, columns)


def _drop_ours(connection: Connection) -> None:
    connection.execute(text("DROP VIEW IF EXISTS eval_verdicts CASCADE"))
    for name in (*(table.name for table in reversed(whole_schema().sorted_tables)), "alembic_version"):
        connection.execute(text(f'DROP TABLE IF EXISTS "{name}" CASCADE'))
    connection.execute(text("DROP FUNCTION IF EXISTS benchyard_audit_guard CASCADE"))


def _set_sequences(connection: Connection, table: str, columns: list[str]) -> None:
    """Make new rows get numbers after those that were loaded."""
    for column in columns:
        sequence = connection.execute(
            text("SELECT pg_get_serial_sequence(:table, :column)"), {"table": f'"{table}"', "column": column}
        ).scalar()
        if sequence:
            highest = f'SELECT coalesce(max("{column}"), 0) + 1 FROM "{table}"'  # noqa: S608 -- both names were checked
            start = connection.execute(text(highest)).scalar()
            values = {"sequence": sequence, "start": start}
            connection.execute(text("SELECT setval(CAST(:sequence AS regclass), :start, false)"), values)


def _checked(written: Any) -> list[dict[str, Any]]:
    """Names go into statements: accept only known tables, and plausible column names."""
    tables = set(whole_schema().tables)
    for entry in written if isinstance(written, list) else [None]:
        if not isinstance(entry, dict) or entry.get("table") not in tables:
            raise DumpFailed("the backup has a table that does not belong there")
        if not all(re.fullmatch(r"[a-z_][a-z0-9_]*", str(column)) for column in entry["columns"]):
            raise DumpFailed("the backup has a column that does not belong there")
    entries: list[dict[str, Any]] = written
    return entries


def _cursor(connection: Connection) -> Any:
    return connection.connection.cursor()


def _named(table: str, columns: list[str]) -> str:
    return f'"{table}" ({", ".join(_quoted(column) for column in columns)})'


def _quoted(name: str) -> str:
    return f'"{name}"'


def _first_line(error: Exception) -> str:
    cause = error.orig if isinstance(error, DBAPIError) else error
    return str(cause).splitlines()[0] if str(cause) else type(cause).__name__
