"""Column types shared by all tables (aware UTC times, compressed JSON), and how JSON is written and read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import DateTime, LargeBinary
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from orchestrator.system.zstd import compress_quickly, decompress


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC time. A naive value is an error, since its meaning would depend on the machine's time zone."""

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


class JsonText(bytes):
    """JSON that is written already; a `CompressedJson` column stores it as it is."""


class CompressedJson(TypeDecorator[Any]):
    """zstd-compressed JSON, for texts that are large, repetitive and read one at a time."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> bytes | None:
        if value is None:
            return None
        return compress_quickly(value if isinstance(value, JsonText) else dumps(value).encode())

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> Any:
        return None if value is None else loads(decompress(value))


class TypedJson(CompressedJson):
    """Compressed JSON of one type, validated on every read."""

    cache_ok = True

    def __init__(self, adapter: TypeAdapter[Any]) -> None:
        super().__init__()
        self.adapter = adapter

    def process_bind_param(self, value: Any, dialect: Dialect) -> bytes | None:
        return super().process_bind_param(self.adapter.dump_python(value, mode="json"), dialect)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> Any:
        return self.adapter.validate_python(super().process_result_value(value, dialect))


class NotJson(ValueError):
    """A value that JSON cannot express."""


def dumps(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=True, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error


def loads(text: str | bytes) -> Any:
    try:
        value = json.loads(text, parse_constant=_no_number)
    except RecursionError:
        return {}
    escape = b"\\ud" if isinstance(text, bytes) else "\\ud"
    return _whole(value) if escape in text.lower() else value  # type: ignore[operator]


def _no_number(_name: str) -> float:
    return 0.0


def _whole(value: Any) -> Any:
    """Replace lone surrogates, which no response can carry."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_whole(entry) for entry in value]
    if isinstance(value, dict):
        return {_whole(name): _whole(entry) for name, entry in value.items()}
    return value
