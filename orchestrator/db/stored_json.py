"""How JSON is written into the database and read from it.

Only what is valid JSON is written: no NaN, no infinity. Whatever an earlier version or another program has stored can be
read: numbers that JSON does not have read as 0, half characters as replacement characters, and a value that is nested too
deeply as an empty object. A single bad row must not break the pages that show it.
"""

from __future__ import annotations

import json
from typing import Any


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
    """Without lone surrogates, which no answer could carry."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_whole(entry) for entry in value]
    if isinstance(value, dict):
        return {_whole(name): _whole(entry) for name, entry in value.items()}
    return value
