"""Insert a row unless its key is taken: the first one stays, also when two transactions try at the same time."""

from __future__ import annotations

from typing import Any

from sqlalchemy import literal
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, SQLModel


def insert_once(session: Session, row: SQLModel) -> bool:
    """Whether it was stored. On PostgreSQL it waits for a transaction that is inserting the same key."""
    table: Any = type(row)
    values = {column.name: getattr(row, column.name) for column in table.__table__.columns}
    dialect = postgresql if session.get_bind().dialect.name == "postgresql" else sqlite
    statement: Any = dialect.insert(table).values(**values)
    # A returned row says it for sure; the driver's row count is -1 on some paths.
    return session.connection().execute(statement.on_conflict_do_nothing().returning(literal(1))).first() is not None
