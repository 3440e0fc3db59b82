"""Statements that are compiled once and passed straight to the driver. For the path of every model call, where
SQLAlchemy's overhead is several times the database's own work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError

Row = tuple[Any, ...]
_Converter = Callable[[Any], Any]


class Prepared:
    """One statement, or one per dialect. SQLAlchemy's types convert values in both directions. Lists of values (`IN`) and
    computed defaults are not supported."""

    def __init__(self, statement: Any) -> None:
        self._statements = statement
        self._compiled: dict[tuple[str, tuple[str, ...]], _Compiled] = {}

    def run(self, connection: Connection, values: Mapping[str, Any]) -> int:
        """Execute it; returns the number of affected rows."""
        return self._executed(connection, values)[1]

    def run_many(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Execute it for each row, in this order; all rows name the same columns. One round trip on PostgreSQL."""
        if not rows:
            return
        compiled = self._compiled_for(connection.dialect, rows[0])
        parameters = [compiled.parameters(row) for row in rows]
        with _cursor(connection, compiled.sql, parameters) as cursor:
            cursor.executemany(compiled.sql, parameters)

    def run_each(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> list[int]:
        """Like `run_many`; returns the number of affected rows for each."""
        if not rows:
            return []
        compiled = self._compiled_for(connection.dialect, rows[0])
        parameters = [compiled.parameters(row) for row in rows]
        with _cursor(connection, compiled.sql, parameters) as cursor:
            if connection.dialect.name == "sqlite":
                return [cursor.execute(compiled.sql, row).rowcount for row in parameters]
            cursor.executemany(compiled.sql, parameters, returning=True)
            counts = [cursor.rowcount]
            while cursor.nextset():
                counts.append(cursor.rowcount)
            return counts

    def first(self, connection: Connection, values: Mapping[str, Any]) -> Row | None:
        return self._executed(connection, values, fetch=True)[0]

    def all(self, connection: Connection, values: Mapping[str, Any]) -> list[Row]:
        compiled = self._compiled_for(connection.dialect, values)
        parameters = compiled.parameters(values)
        with _cursor(connection, compiled.sql, parameters) as cursor:
            cursor.execute(compiled.sql, parameters)
            return [compiled.converted(row, cursor.description) for row in cursor.fetchall()]

    def _executed(self, connection: Connection, values: Mapping[str, Any], *, fetch: bool = False) -> tuple[Row | None, int]:
        compiled = self._compiled_for(connection.dialect, values)
        parameters = compiled.parameters(values)
        with _cursor(connection, compiled.sql, parameters) as cursor:
            cursor.execute(compiled.sql, parameters)
            row = cursor.fetchone() if fetch else None
            return row and compiled.converted(row, cursor.description), cursor.rowcount

    def _compiled_for(self, dialect: Dialect, values: Mapping[str, Any]) -> _Compiled:
        key = dialect.name, tuple(values)
        compiled = self._compiled.get(key)
        if compiled is None:
            named = isinstance(self._statements, dict)
            statement = self._statements[dialect.name] if named else self._statements
            compiled = self._compiled[key] = _Compiled(statement, dialect, list(values))
        return compiled


@contextmanager
def _cursor(connection: Connection, sql: str, parameters: Any) -> Iterator[Any]:
    """A cursor of the driver, whose errors are raised as SQLAlchemy's: callers handle only those."""
    driver: Any = connection.dialect.loaded_dbapi
    cursor = connection.connection.cursor()
    try:
        yield cursor
    except driver.Error as error:
        raise DBAPIError.instance(sql, parameters, error, driver.Error, dialect=connection.dialect) from error
    finally:
        cursor.close()


class _Compiled:
    def __init__(self, statement: Any, dialect: Dialect, names: list[str]) -> None:
        compiled: Any = statement.compile(dialect=dialect, column_keys=names)
        self.sql = str(compiled)
        self._fixed = {name: bind.value for name, bind in compiled.binds.items() if not bind.required}
        for column in [*compiled.insert_prefetch, *compiled.update_prefetch]:
            if not column.default.is_scalar:
                raise TypeError(f"the default of {column} is computed; give a value")
            self._fixed[column.key] = column.default.arg
        binds: dict[str, _Converter | None] = {
            name: bind.type.dialect_impl(dialect).bind_processor(dialect) for name, bind in compiled.binds.items()
        }
        self._order: list[tuple[str, _Converter | None]] = [(name, binds[name]) for name in compiled.positiontup or binds]
        self._positional = compiled.positional
        self._dialect = dialect
        self._types = [column.type.dialect_impl(dialect) for column in compiled._result_columns]
        self._converters: list[_Converter | None] | None = None

    def parameters(self, values: Mapping[str, Any]) -> Any:
        parameters = {**self._fixed, **values} if self._fixed else values
        if self._positional:
            return [convert(parameters[name]) if convert else parameters[name] for name, convert in self._order]
        return {name: convert(parameters[name]) if convert else parameters[name] for name, convert in self._order}

    def converted(self, row: Row, description: Any) -> Row:
        if self._converters is None:  # some depend on the driver's name for the type
            typed = zip(self._types, description, strict=True)
            self._converters = [kind.result_processor(self._dialect, column[1]) for kind, column in typed]
        return tuple(convert(value) if convert else value for convert, value in zip(self._converters, row, strict=True))
