"""The file that describes a batch: JSON or YAML, with the fields of `POST /api/batches`. Only this module imports PyYAML."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

from orchestrator.cli.errors import BadUsage
from orchestrator.cli.view.text import clean

MAX_BYTES = 1 << 20


def read_config(path: Path) -> dict[str, Any]:
    """Files ending in `.json` are JSON, all others YAML, which includes JSON."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise _too_large(path)
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadUsage(f"{clean(path)} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise BadUsage(f"{clean(path)} is not a text file.") from error
    try:
        config = _json(text, path) if path.suffix.lower() == ".json" else _yaml(text, path)
        if not isinstance(config, dict) or not all(isinstance(name, str) for name in config):
            raise BadUsage(f"{clean(path)} is not a list of names and values; docs/examples has some to begin with.")
        plain: dict[str, Any] = json.loads(_as_json(config, path))
    except RecursionError as error:
        raise BadUsage(f"{clean(path)} is nested too deeply.") from error
    return plain


def _json(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadUsage(f"{clean(path)} is not JSON: {clean(error)}.") from error


def _yaml(text: str, path: Path) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise BadUsage(f"{clean(path)} is not YAML: {' '.join(clean(error).split())}.") from error


def _as_json(config: dict[str, Any], path: Path) -> bytes:
    """Encodes in pieces up to the limit: a few YAML aliases can expand to gigabytes."""
    encoded = bytearray()
    try:
        for piece in json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_text).iterencode(config):
            encoded += piece.encode()
            if len(encoded) > MAX_BYTES:
                raise _too_large(path)
    except (TypeError, ValueError) as error:
        raise BadUsage(f"{clean(path)} has a value that cannot be sent as JSON: {clean(error)}.") from error
    return bytes(encoded)


def _text(value: Any) -> str:
    """YAML parses dates; the API expects text."""
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"a value of type {type(value).__name__}")


def _too_large(path: Path) -> BadUsage:
    return BadUsage(f"{clean(path)} is larger than 1 MiB; a description of a batch is smaller.")
