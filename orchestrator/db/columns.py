"""Column types shared by all tables: aware UTC times and compressed JSON, the same on SQLite and PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, LargeBinary
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from orchestrator.db import stored_json
from orchestrator.system.zstd import compress_quickly, decompress


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC time; a naive value is an error, since it would mean whatever the machine's zone is."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without zone reached the database; use orchestrator.system.clock")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class CompressedJson(TypeDecorator[Any]):
    """JSON, zstd-compressed: for texts that are large, repetitive and read one at a time."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> bytes | None:
        if value is None:
            return None
        return compress_quickly(stored_json.dumps(value).encode())

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> Any:
        return None if value is None else stored_json.loads(decompress(value))
