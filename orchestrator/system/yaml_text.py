"""Reads YAML that users write. The only module that imports PyYAML. A few aliases can expand to gigabytes, so the result is
measured as JSON before it is used."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

MAX_BYTES = 1 << 20


class BadDocument(ValueError):
    """The text cannot be used; the message says why, without naming the file."""


def parse_document(text: str, *, is_json: bool = False) -> dict[str, Any]:
    """The names and values in a YAML or JSON text. Raises `BadDocument`."""
    if len(text) > MAX_BYTES:
        raise BadDocument("is larger than 1 MiB")
    try:
        document = _json(text) if is_json else _yaml(text)
        if not isinstance(document, dict) or not all(isinstance(name, str) for name in document):
            raise BadDocument("is not a list of names and values")
        plain: dict[str, Any] = json.loads(_as_json(document))
    except RecursionError:
        raise BadDocument("is nested too deeply") from None
    return plain


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadDocument(f"is not JSON: {error}") from None


def _yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise BadDocument(f"is not YAML: {' '.join(str(error).split())}") from None


def _as_json(document: dict[str, Any]) -> bytes:
    """Encodes in pieces, up to the limit."""
    encoded = bytearray()
    try:
        for piece in json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_text).iterencode(document):
            encoded += piece.encode()
            if len(encoded) > MAX_BYTES:
                raise BadDocument("is larger than 1 MiB, with everything that it repeats written out")
    except (TypeError, ValueError) as error:
        if isinstance(error, BadDocument):
            raise
        raise BadDocument(f"has a value that cannot be sent as JSON: {error}") from None
    return bytes(encoded)


def _text(value: Any) -> str:
    """YAML parses dates; everything here expects text."""
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"a value of type {type(value).__name__}")
