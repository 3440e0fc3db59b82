"""Alembic's entry point."""

from __future__ import annotations

from typing import Any

from alembic import context
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.pool import NullPool

from orchestrator.db.table_modules import whole_schema

MIGRATION_LOCK = 7_346_019
target = whole_schema()
WITH_A_DIRECTION = ("ix_runs_queue",)
"""Indexes of which SQLite does not tell that a column is descending, so that they would always differ from the tables."""


def compared(_item: object, name: str | None, kind: str, _reflected: bool, _other: object) -> bool:
    """Whether an index of the tables is compared with the database, when a new migration is looked for."""
    return not (kind == "index" and name in WITH_A_DIRECTION)


def open_engine(url: str) -> Engine:
    """Without a pool: a connection that ends gives back its lock, however it ends."""
    engine = create_engine(url, poolclass=NullPool)
    if engine.dialect.name == "sqlite":

        @event.listens_for(engine, "connect")
        def _connect(connection: Any, _record: Any) -> None:
            connection.isolation_level = None  # the driver would begin nothing before a CREATE TABLE
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # counts only before the first table is there

        @event.listens_for(engine, "begin")
        def _begin(connection: Any) -> None:
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def run() -> None:
    engine = open_engine(context.config.attributes["url"])
    with engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
            connection.commit()
        context.configure(
            connection=connection,
            target_metadata=target,
            transaction_per_migration=True,
            transactional_ddl=True,
            render_as_batch=connection.dialect.name == "sqlite",
            compare_type=False,
            include_object=compared,
        )
        with context.begin_transaction():
            context.run_migrations()
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": MIGRATION_LOCK})
            connection.commit()


run()
