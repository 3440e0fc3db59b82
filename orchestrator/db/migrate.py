"""Migrates a database to the newest schema. Safe to repeat, and to run from several processes at once.

Alembic is imported only if there is something to migrate: a start with a current database needs neither its time nor its
memory.
"""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from orchestrator.startup import BadConfiguration, CannotStart
from orchestrator.system.files import private_file

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS = Path(__file__).parent / "migrations"


_NAMES = re.compile(r'^(revision|down_revision) = "(\w+)"', re.MULTILINE)


class DatabaseTooNew(CannotStart):
    """The tables were changed by a newer version of Benchyard."""


class DatabaseUnusable(CannotStart):
    """The database does not answer, or is damaged."""


def alembic_config(url: str) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.attributes["url"] = url
    return config


def migrate(url: str) -> None:
    """Apply the missing migrations, each in its own transaction, so that an interrupted one can be resumed."""
    try:
        revision = stored_revision(url)
        if revision is not None and revision == newest_revision():
            return
        if revision is not None and revision not in known_revisions():
            raise DatabaseTooNew(
                f"The database is of a newer version of Benchyard: it has schema {revision}, and this version knows "
                f"schemas up to {newest_revision()}. Start the newer version, or restore a backup that this version made."
            )
        from alembic import command

        command.upgrade(alembic_config(url), "head")
    except DBAPIError as error:
        raise DatabaseUnusable(_why(url, error)) from error


def stored_revision(url: str) -> str | None:
    """The schema revision of a database; None if it has no schema yet."""
    path = make_url(url)
    if path.get_backend_name() == "sqlite" and path.database:
        try:
            private_file(Path(path.database))
        except OSError as error:
            raise BadConfiguration(f"The database {path.database} cannot be opened: {error.strerror}.") from error
    try:
        engine = create_engine(url, poolclass=NullPool)
    except (ArgumentError, ImportError) as error:
        raise BadConfiguration(f"DATABASE_URL is not valid: {error}") from error
    with engine.connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def known_revisions() -> frozenset[str]:
    return frozenset(_chain())


def newest_revision() -> str:
    chain = _chain()
    (newest,) = chain.keys() - chain.values()
    return newest


def _chain() -> dict[str, str | None]:
    """Each revision with the one before it, as its file says."""
    chain: dict[str, str | None] = {}
    for file in (MIGRATIONS / "versions").glob("*.py"):
        names = dict(_NAMES.findall(file.read_text()))
        chain[names["revision"]] = names.get("down_revision")
    return chain


def check(url: str) -> None:
    """Fail if the tables in the code differ from the migrations."""
    from alembic import command

    command.check(alembic_config(url))


def _why(url: str, error: DBAPIError) -> str:
    address = make_url(url)
    cause = str(error.orig).splitlines()[0] if str(error.orig) else type(error.orig).__name__
    if address.get_backend_name() != "sqlite":
        where = address.render_as_string(hide_password=True)
        return f"The database {where} cannot be used: {cause}. Check that it runs and that DATABASE_URL is right."
    if getattr(error.orig, "sqlite_errorcode", None) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return (
            f"The file {address.database} is damaged or is not a database ({cause}). Move it away and restore a backup with "
            "`benchyard restore FILE`; without one, a start makes an empty database."
        )
    return f"The database {address.database} cannot be used: {cause}. Check the disk and who may write there."
