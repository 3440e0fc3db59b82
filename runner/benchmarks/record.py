"""Reads fields of a benchmark record; raises `ProblemError` if a field is missing or has the wrong type."""

from collections.abc import Mapping
from typing import Any

from runner.errors import ProblemError


def required(record: Mapping[str, Any], field: str) -> str:
    value = record.get(field)
    if not isinstance(value, str) or not value.strip():
        raise ProblemError(f"the record has no {field}")
    return value


def entry_point(record: Mapping[str, Any]) -> str:
    name = required(record, "entry_point")
    if not name.isidentifier():
        raise ProblemError(f"entry_point is not a function name: {name!r:.100}")
    return name
