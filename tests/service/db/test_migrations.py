"""Migrations: from nothing, twice, side by side, and after a death half-way (F25), on both databases."""

from __future__ import annotations

import threading

import pytest
from alembic import command
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import create_engine, inspect
from sqlalchemy.pool import NullPool
from sqlmodel import SQLModel

from orchestrator.db.migrate import alembic_config, check, migrate
from orchestrator.evals import tables as eval_tables
from orchestrator.runs import tables

assert tables.ContainerRun.__tablename__
assert eval_tables.EvalSet.__tablename__


def table_names(url: str) -> set[str]:
    return set(inspect(create_engine(url, poolclass=NullPool)).get_table_names())


def revision(url: str) -> str | None:
    with create_engine(url, poolclass=NullPool).connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def test_from_an_empty_database(empty_database_url: str) -> None:
    migrate(empty_database_url)
    assert table_names(empty_database_url) == {*SQLModel.metadata.tables, "alembic_version"}
    check(empty_database_url)


def test_again_changes_nothing(migrated_database_url: str) -> None:
    before = revision(migrated_database_url)
    migrate(migrated_database_url)
    assert revision(migrated_database_url) == before


def test_tables_and_migrations_agree(migrated_database_url: str) -> None:
    check(migrated_database_url)


@pytest.mark.parametrize("at", [1, 4, 9])
def test_killed_half_way_it_resumes(empty_database_url: str, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    # Given a migration that dies with its process at the n-th table
    made: list[str] = []
    real = Operations.create_table

    def dying(self: Operations, name: str, *columns: object, **options: object) -> object:
        made.append(name)
        if len(made) == at:
            raise SystemExit("killed")
        return real(self, name, *columns, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as world:
        world.setattr(Operations, "create_table", dying)
        from alembic import op

        world.setattr(op, "create_table", lambda name, *columns, **options: dying(op._proxy, name, *columns, **options))
        with pytest.raises(SystemExit):
            migrate(empty_database_url)
    # When the service starts again
    migrate(empty_database_url)
    # Then everything is there
    check(empty_database_url)


def test_two_at_once(empty_database_url: str, dialect: str) -> None:
    """Two orchestrators that start together on PostgreSQL; on SQLite the data directory's lock lets one in."""
    if dialect == "sqlite":
        migrate(empty_database_url)
        return
    failures: list[BaseException] = []

    def start() -> None:
        try:
            migrate(empty_database_url)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=start)]
    # alembic's own context is per process, so the second one is a process in real life; here it waits on the lock
    holder = create_engine(empty_database_url, poolclass=NullPool).connect()
    holder.exec_driver_sql("SELECT pg_advisory_lock(7346019)")
    holder.commit()
    threads[0].start()
    threads[0].join(0.5)
    assert threads[0].is_alive(), "it did not wait for the other"
    holder.close()
    threads[0].join(20)
    assert not failures
    check(empty_database_url)


def test_every_migration_can_be_undone(migrated_database_url: str) -> None:
    config = alembic_config(migrated_database_url)
    command.downgrade(config, "base")
    assert table_names(migrated_database_url) <= {"alembic_version"}
    command.upgrade(config, "head")
    check(migrated_database_url)
