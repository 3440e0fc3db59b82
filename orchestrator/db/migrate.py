"""Migrates a database to the newest schema. Safe to repeat, and to run from several processes at once."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from orchestrator.startup import BadConfiguration, CannotStart
from orchestrator.system.files import private_file

MIGRATIONS = Path(__file__).parent / "migrations"


class DatabaseTooNew(CannotStart):
    """The tables were changed by a newer version of Benchyard."""


class DatabaseUnusable(CannotStart):
    """The database does not answer, or is damaged."""


def alembic_config(url: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.attributes["url"] = url
    return config


def migrate(url: str) -> None:
    """Apply the missing migrations, each in its own transaction, so that an interrupted one can be resumed."""
    config = alembic_config(url)
    try:
        revision = stored_revision(url)
        if revision is not None and revision not in known_revisions():
            raise DatabaseTooNew(
                f"The database is of a newer version of Benchyard: it has schema {revision}, and this version knows "
                f"schemas up to {newest_revision()}. Start the newer version, or restore a backup that this version made."
            )
        command.upgrade(config, "head")
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
        return MigrationContext.configure(connection).get_current_revision()


def known_revisions() -> frozenset[str]:
    scripts = ScriptDirectory.from_config(alembic_config(""))
    return frozenset(script.revision for script in scripts.walk_revisions())


def newest_revision() -> str:
    return str(ScriptDirectory.from_config(alembic_config("")).get_current_head())


def check(url: str) -> None:
    """Fail if the tables in the code differ from the migrations."""
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
