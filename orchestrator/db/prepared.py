"""Statements that are compiled once and passed straight to the driver. For the path of every model call, where
SQLAlchemy's overhead is several times the database's own work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

    def first(self, connection: Connection, values: Mapping[str, Any]) -> Row | None:
        return self._executed(connection, values, fetch=True)[0]

    def _executed(self, connection: Connection, values: Mapping[str, Any], *, fetch: bool = False) -> tuple[Row | None, int]:
        dialect = connection.dialect
        key = dialect.name, tuple(values)
        compiled = self._compiled.get(key)
        if compiled is None:
            named = isinstance(self._statements, dict)
            statement = self._statements[dialect.name] if named else self._statements
            compiled = self._compiled[key] = _Compiled(statement, dialect, list(values))
        cursor = connection.connection.cursor()
        parameters = compiled.parameters(values)
        try:
            cursor.execute(compiled.sql, parameters)
            row = cursor.fetchone() if fetch else None
            return row and compiled.converted(row, cursor.description), cursor.rowcount
        except dialect.loaded_dbapi.Error as error:  # callers handle only SQLAlchemy's errors
            raise DBAPIError.instance(
                compiled.sql, parameters, error, dialect.loaded_dbapi.Error, dialect=dialect
            ) from error
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
