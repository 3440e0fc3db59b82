"""Inserts a row unless its key exists: the first insert wins, even if two transactions try at the same time."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import literal
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, SQLModel

from orchestrator.db.workspaces import assign_workspace


def insert_once(session: Session, row: SQLModel) -> bool:
    """Returns whether the row was stored. On PostgreSQL, waits for a transaction that is inserting the same key."""
    assign_workspace(session, row)
    table = type(row)
    values = {column.name: getattr(row, column.name) for column in table.__table__.columns}  # type: ignore[attr-defined]
    statement = _statement(table, session.get_bind().dialect.name)
    return session.connection().execute(statement, values).first() is not None


@cache
def _statement(table: type[SQLModel], dialect: str) -> Any:
    """Cached: building it costs more than running it. It returns the row, because a row count may be -1."""
    insert: Any = (postgresql if dialect == "postgresql" else sqlite).insert(table)
    return insert.on_conflict_do_nothing().returning(literal(1))
