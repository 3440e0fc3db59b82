"""Alembic's entry point."""

from __future__ import annotations

from alembic import context
from sqlalchemy import create_engine, text
from sqlmodel import SQLModel

from orchestrator.db import call_tables, tables

MIGRATION_LOCK = 7_346_019
target = SQLModel.metadata
assert {tables.ContainerRun.__tablename__, call_tables.GatewayFlight.__tablename__} <= target.tables.keys()


def run() -> None:
    engine = create_engine(context.config.attributes["url"])
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
        )
        with context.begin_transaction():
            context.run_migrations()
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": MIGRATION_LOCK})
            connection.commit()
    engine.dispose()


run()
